/** Seeded changes to a JSON body, most of them near the edge between right and wrong. */
import type { RandomStream } from "../../../src/std/random.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Values that are right in one place and wrong in another. */
const VALUES: readonly Json[] = [
  ...[null, true, false, 0, 1, -1, 4, 5, 30, 31, 0.5, 1.5, -0.001, 1.001, 1e300, 3.402823e38, 3.4028236e38],
  ...[2 ** 53 - 1, 2 ** 53, "", " ", "x", "a b", " a", "a ", "é😀", "a\u0000", "\ud800", "\u200b", "a\u2028b", "1"],
  ...["user", "system", "text", "image_url", "😀".repeat(128), "😀".repeat(129), "a".repeat(128), "a".repeat(129)],
  ...[[], {}, [1], [[]], { type: "text", text: "hi" }, { type: "text", text: " \t\u00a0" }, { type: "video" }],
  { type: "image_url", image_url: { url: "data:image/jpeg;base64,/9j/" } },
  { type: "image_url", image_url: { url: "data:image/jpeg;base64,/9j" } },
  { type: "image_url", image_url: "data:image/jpeg;base64,/9j/" },
  { joint_position: [], gripper_position: [0, 1] },
];

const BASE64 = "ABCDwQgwxyz0189+/=_- \n";

function pick<T>(random: RandomStream, from: readonly T[]): T {
  return from[random.word() % from.length] as T;
}

/** The body with 1 to 3 changes; `fields` are top-level names that may be added. */
export function mutated(body: unknown, fields: readonly string[], random: RandomStream): unknown {
  const changed = structuredClone(body) as Record<string, Json>;
  for (let left = 1 + (random.word() % 3); left > 0; left -= 1) {
    if (random.word() % 3 === 0) changed[pick(random, fields)] = structuredClone(pick(random, VALUES));
    else change(changed, random);
  }
  return changed;
}

/** Changes one value somewhere below `container`. */
function change(container: Json[] | Record<string, Json>, random: RandomStream): void {
  const key = pick(random, Object.keys(container));
  const value = (container as Record<string, Json>)[key];
  if (typeof value === "object" && value !== null && Object.keys(value).length > 0 && random.word() % 5 !== 0) {
    change(value, random);
    return;
  }
  const place = (put: Json) => Object.assign(container, { [key]: put });
  switch (random.word() % 5) {
    case 0:
      if (Array.isArray(container)) container.splice(Number(key), 1);
      else delete container[key];
      return;
    case 1:
      if (Array.isArray(container)) container.push(structuredClone(pick(random, [...VALUES, ...container])));
      else container[`x${random.word() % 9}`] = structuredClone(pick(random, VALUES));
      return;
    case 2:
    case 3:
      if (typeof value === "string") place(edited(value, random));
      else if (typeof value === "number") place(value + pick(random, [-1, -0.3, 0.3, 1, 12]));
      else place(structuredClone(pick(random, VALUES)));
      return;
    default:
      place(structuredClone(pick(random, VALUES)));
  }
}

/** A text with its end cut, continued or exchanged: where padding and trailing spaces are. */
function edited(text: string, random: RandomStream): string {
  const kept = text.slice(0, Math.max(0, text.length - (random.word() % 5)));
  const added = Array.from({ length: random.word() % 5 }, () => pick(random, [...BASE64]));
  return kept + added.join("");
}
