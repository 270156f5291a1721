/** Amounts of money as text (contract section 5): nano-dollars as US dollars with nine decimal places. */

const NANOS = 1_000_000_000n;

/** Decimal USD, such as `99.999958000`. */
export function usdText(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  return `${nanos < 0n ? "-" : ""}${size / NANOS}.${String(size % NANOS).padStart(9, "0")}`;
}

/** Well below the range of 64 bits. */
const DOLLARS_DIGITS_MAX = 9;

/** Nano-dollars of `12`, `12.5`, `-3.000000001`; undefined for anything else. */
export function nanosOf(text: string): bigint | undefined {
  const match = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(text.trim());
  const [, sign, dollars = "", places = ""] = match ?? [];
  if (!match || dollars.length > DOLLARS_DIGITS_MAX) return undefined;
  const nanos = BigInt(dollars) * NANOS + BigInt(places.padEnd(9, "0"));
  return sign === "-" ? -nanos : nanos;
}
