/** Days and months of the calendar, UTC, as numbers that sort. */

/** Days since 1970-01-01 of Unix seconds. */
export function dayOf(unixSeconds: number): number {
  return Math.floor(unixSeconds / 86_400);
}

/** YYYYMM of Unix seconds. */
export function monthOf(unixSeconds: number): number {
  const date = new Date(unixSeconds * 1000);
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}

/** YYYYMM of a day. */
export function monthOfDay(day: number): number {
  return monthOf(day * 86_400);
}

/** `2026-11-21` of a day. */
export function dayText(day: number): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}

/** Unix seconds of the first moment of a month YYYYMM. */
export function monthStart(month: number): number {
  return Date.UTC(Math.floor(month / 100), (month % 100) - 1) / 1000;
}
