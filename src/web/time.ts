/** Times and days as the pages show them: UTC, to the minute. */
import { type Html, html } from "./markup.ts";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `2026-11-21 09:15` of Unix seconds. */
export function moment(unixSeconds: number): Html {
  const iso = new Date(unixSeconds * 1000).toISOString();
  return html`<time datetime="${iso.slice(0, 19)}Z">${iso.slice(0, 10)} ${iso.slice(11, 16)}</time>`;
}

/** `45 seconds ago`, `3 minutes ago`. */
export function ago(seconds: number): string {
  if (seconds < 2) return "just now";
  if (seconds < 120) return `${Math.floor(seconds)} seconds ago`;
  return `${Math.floor(seconds / 60)} minutes ago`;
}

/** The last `count` days up to `today`, oldest first, as `2026-11-21`. */
export function lastDays(today: string, count: number): string[] {
  const last = Date.parse(`${today}T00:00:00Z`);
  return Array.from({ length: count }, (_, at) =>
    new Date(last - (count - 1 - at) * 86_400_000).toISOString().slice(0, 10),
  );
}

/** `21 Nov` of `2026-11-21`. */
export function shortDay(day: string): string {
  const [, month, date] = day.split("-");
  return `${Number(date)} ${MONTHS[Number(month) - 1]}`;
}
