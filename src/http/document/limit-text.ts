/** The bounds of limits.ts in the words of the documentation, whose texts name them as `{{name}}` or `{{name.part}}`. */
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";

type Unit = readonly [size: number, name: string];
const BYTES: readonly Unit[] = [
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
];
const SECONDS: readonly Unit[] = [
  [86_400, "days"],
  [3_600, "hours"],
  [60, "minutes"],
];

/** The text with its bounds put in. */
export function withLimits(text: string): string {
  return text.replace(/\{\{(\w+)(?:\.(\w+))?\}\}/g, (_, name: string, part = "") => limitText(name, part));
}

function limitText(name: string, part: string): string {
  const limit = (LIMITS as Readonly<Record<string, number | Readonly<Record<string, number>>>>)[name];
  const value = present(typeof limit === "object" ? limit[part] : limit, `the limit {{${name}}}`);
  if (/Bytes/.test(name)) {
    const [size, unit] = BYTES.find(([size]) => value % size === 0) ?? [1, ""];
    return `${whole(value / size)} ${unit}`.trimEnd();
  }
  if (part !== "" || !/Ms|Seconds/.test(name)) return whole(value);
  const seconds = /Ms/.test(name) ? value / 1000 : value;
  if (seconds < 1) return `${value} ms`;
  // A number of one unit is told in the smaller one: 60 s, 24 hours.
  const [size, unit] = SECONDS.find(([size]) => seconds % size === 0 && seconds > size) ?? [1, "s"];
  return `${whole(seconds / size)} ${unit}`;
}

function whole(value: number): string {
  return value.toLocaleString("en-US");
}
