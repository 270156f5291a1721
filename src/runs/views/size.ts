/** Sizes of files as the pages show them. */
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** `1 byte`, `812 bytes`, `1.5 MiB`, `100 GiB`. */
export function sizeText(bytes: number): string {
  if (bytes === 1) return "1 byte";
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}
