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

type Size = Pick<Facts["image"], "width" | "height" | "tokens">;
type Rule = readonly [holds: boolean, path: string, found: number, expected: string];

/** What every family asks of the sizes in model.json: whole patches, and a time embedding of sines and cosines. */
export function commonRules({ image, views = [] }: Facts, patch: number, part: string, timeWidth: number): Rule[] {
  const even = timeWidth % 2 === 0 && timeWidth > 2;
  return [
    ...patchRules("/image", image, patch),
    ...views.flatMap((view, index) => patchRules(`/views/${index}`, view, patch)),
    [even, `/architecture/${part}/time_width`, timeWidth, "an even number above 2"],
  ];
}

function patchRules(path: string, { width, height, tokens }: Size, patch: number): Rule[] {
  const patches = (width / patch) * (height / patch);
  return [
    [width % patch === 0, `${path}/width`, width, `a multiple of the patch, ${patch}`],
    [height % patch === 0, `${path}/height`, height, `a multiple of the patch, ${patch}`],
    [tokens === patches, `${path}/tokens`, tokens, `${patches}, the patches of one image`],
  ];
}

/** The fault of the first rule that does not hold. */
export function firstBroken(rules: readonly Rule[]): string | undefined {
  const broken = rules.find(([holds]) => !holds);
  return broken && fault(broken[1], broken[2], broken[3]);
}
