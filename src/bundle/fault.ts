/** How contradictions in a manifest or in model.json are worded. */
import type { Facts } from "./architecture.ts";

export function fault(path: string, found: unknown, expected: unknown): string {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return `${path}: found ${text(found)}, expected ${text(expected)}`;
}

/** Index of the first value that an earlier one equals. */
export function firstRepeated(values: readonly string[]): number | undefined {
  const index = values.findIndex((value, at) => values.indexOf(value) < at);
  return index < 0 ? undefined : index;
}

export type Rule = readonly [holds: boolean, path: string, found: unknown, expected: unknown];

/** What every family asks of the sizes in model.json: whole patches, `each` × `each` of them in a token, and a time embedding of sines and cosines. */
export function commonRules({ image }: Facts, patch: number, part: string, timeWidth: number, each = 1): Rule[] {
  const { width, height, tokens } = image;
  const pixels = patch * each;
  const patches = (width / pixels) * (height / pixels);
  const even = timeWidth % 2 === 0 && timeWidth > 2;
  return [
    [width % pixels === 0, "/image/width", width, `a multiple of the patch, ${pixels}`],
    [height % pixels === 0, "/image/height", height, `a multiple of the patch, ${pixels}`],
    [tokens === patches, "/image/tokens", tokens, `${patches}, the patches of one image`],
    [even, `/architecture/${part}/time_width`, timeWidth, "an even number above 2"],
  ];
}

/** The fault of the first rule that does not hold. */
export function firstBroken(rules: readonly Rule[]): string | undefined {
  const broken = rules.find(([holds]) => !holds);
  return broken && fault(broken[1], broken[2], broken[3]);
}
