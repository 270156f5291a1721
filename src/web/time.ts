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

/** `21 Nov` of a day (std/calendar.ts). */
export function shortDay(day: number): string {
  const date = new Date(day * 86_400_000);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}
