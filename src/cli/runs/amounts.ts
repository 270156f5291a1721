/** Bytes and spans of time for people. */

const UNITS = ["kB", "MB", "GB", "TB", "PB"] as const;

/** With three digits: 999 B, 1.23 kB, 45.6 MB, 789 GB. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  let value = bytes / 1_000;
  let unit = 0;
  // What would be rounded up to 1000 belongs to the next unit.
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const places = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(places)} ${UNITS[unit]}`;
}

/** 0:07, 12:34, 1:02:03. */
export function spanText(seconds: number): string {
  const whole = Math.ceil(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3_600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export function filesText(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}

/** Whole seconds, in UTC. */
export function timeText(unixSeconds: number): string {
  return new Date(Math.floor(unixSeconds) * 1_000).toISOString().replace(".000", "");
}
