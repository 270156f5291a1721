/** Nano-dollars as people read them, with the exact amount beside it. */
import { type Html, html } from "./markup.ts";

const DECIMALS_EXACT = 9;
const DECIMALS_MIN = 2;
const CENT = 10_000_000n;

/** Dollars with so many digits after the point, rounded half away from zero: `$1,234.50`, `−$0.02`. */
export function dollars(nanoDollars: bigint, decimals: number): string {
  const size = nanoDollars < 0n ? -nanoDollars : nanoDollars;
  const unit = 10n ** BigInt(DECIMALS_EXACT - decimals);
  const rounded = (size + unit / 2n) / unit;
  const digits = rounded.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals).replace(/\B(?=(\d{3})+$)/g, ",");
  const sign = nanoDollars < 0n && rounded > 0n ? "−" : "";
  return `${sign}$${whole}${decimals === 0 ? "" : `.${digits.slice(-decimals)}`}`;
}

/** To the cent; what is below ten cents and no whole number of them, to two significant digits: `$12.34`, `$0.0013`. */
export function moneyText(nanoDollars: bigint): string {
  const size = nanoDollars < 0n ? -nanoDollars : nanoDollars;
  if (size >= 10n * CENT || size % CENT === 0n) return dollars(nanoDollars, DECIMALS_MIN);
  const places = Math.min(DECIMALS_EXACT, DECIMALS_EXACT + 2 - size.toString().length);
  return dollars(nanoDollars, places);
}

/** Every digit that there is: `$99.999958000`. */
export function exactMoneyText(nanoDollars: bigint): string {
  return dollars(nanoDollars, DECIMALS_EXACT);
}

/** The amount for people; its title holds the exact one. */
export function money(nanoDollars: bigint): Html {
  const exact = exactMoneyText(nanoDollars);
  return html`<data value="${exact.replace(/[$,]/g, "").replace("−", "-")}" title="${exact}">${moneyText(nanoDollars)}</data>`;
}
