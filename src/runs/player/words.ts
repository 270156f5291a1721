/** Times and numbers as the player shows them, and addresses of the run's files. */

/** `1:02:03.400`, `0:07.133`. */
export function clockText(seconds: number): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const part = (value: number, digits: number) => String(value).padStart(digits, "0");
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor(ms / 60_000) % 60;
  const rest = `${part(Math.floor(ms / 1000) % 60, 2)}.${part(ms % 1000, 3)}`;
  return hours > 0 ? `${hours}:${part(minutes, 2)}:${rest}` : `${minutes}:${rest}`;
}

export function valueText(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100_000)) return value.toExponential(2);
  return value.toFixed(size >= 100 ? 1 : 3);
}

export function msText(ms: number | undefined): string {
  return ms === undefined ? "–" : `${ms.toFixed(ms < 10 ? 2 : 1)} ms`;
}

/** The address of a file that the log names; undefined if no file of a run can have this path. */
export function fileAddress(base: string, path: string): string | undefined {
  const segments = path.split("/");
  if (segments.some((one) => one === "" || one === "." || one === "..") || !path.isWellFormed()) return undefined;
  return base + segments.map(encodeURIComponent).join("/");
}
