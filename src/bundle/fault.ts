/** How contradictions in a manifest are worded. */

export function fault(path: string, found: unknown, expected: unknown): string {
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return `${path}: found ${text(found)}, expected ${text(expected)}`;
}

/** Index of the first value that an earlier one equals. */
export function firstRepeated(values: readonly string[]): number | undefined {
  const index = values.findIndex((value, at) => values.indexOf(value) < at);
  return index < 0 ? undefined : index;
}

/** The fault of the first rule that does not hold. */
export function firstBroken(
  rules: readonly (readonly [holds: boolean, path: string, found: number, expected: string])[],
): string | undefined {
  const broken = rules.find(([holds]) => !holds);
  return broken && fault(broken[1], broken[2], broken[3]);
}
