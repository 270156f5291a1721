/** Amounts of money for people: rounded, with the exact amount as a title. */
import { type Html, html } from "./markup.ts";

const DECIMALS_EXACT = 9;
const DECIMALS_MIN = 2;
/** A cent in nano-dollars. */
export const CENT = 10_000_000n;

/** Dollars with `decimals` decimal places, rounded half away from zero: `$1,234.50`, `−$0.02`. */
export function dollars(nanoDollars: bigint, decimals: number): string {
  const size = nanoDollars < 0n ? -nanoDollars : nanoDollars;
  const unit = 10n ** BigInt(DECIMALS_EXACT - decimals);
  const rounded = (size + unit / 2n) / unit;
  const digits = rounded.toString().padStart(decimals + 1, "0");
  const whole = grouped(digits.slice(0, digits.length - decimals));
  const sign = nanoDollars < 0n && rounded > 0n ? "−" : "";
  return `${sign}$${whole}${decimals === 0 ? "" : `.${digits.slice(-decimals)}`}`;
}

/** `1,234` of `1234`. */
export function grouped(digits: string | number): string {
  return String(digits).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Whole cents; below ten cents two significant digits if the amount is not in whole cents: `$12.34`, `$0.0013`. */
export function moneyText(nanoDollars: bigint): string {
  const size = nanoDollars < 0n ? -nanoDollars : nanoDollars;
  if (size >= 10n * CENT || size % CENT === 0n) return dollars(nanoDollars, DECIMALS_MIN);
  const places = Math.min(DECIMALS_EXACT, DECIMALS_EXACT + 2 - size.toString().length);
  return dollars(nanoDollars, places);
}

/** All nine decimal places: `$99.999958000`. */
export function exactMoneyText(nanoDollars: bigint): string {
  return dollars(nanoDollars, DECIMALS_EXACT);
}

/** The rounded amount; its title is the exact one. */
export function money(nanoDollars: bigint): Html {
  const exact = exactMoneyText(nanoDollars);
  return html`<data value="${exact.replace(/[$,]/g, "").replace("−", "-")}" title="${exact}">${moneyText(nanoDollars)}</data>`;
}
