/** Small models of the family flow-vla whose graphs are given their inputs as published policies want them: test/vectors/flow-vla. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { bundleOf } from "./built.ts";
import type { FlowBundle } from "./flow-bundle.ts";

export const VARIANTS = join(import.meta.dir, "../vectors/flow-vla");

export async function variantNames(): Promise<string[]> {
  return (await readdir(VARIANTS)).sort();
}

/** Its bundle, which all tests share. */
export function variant(name: string): Promise<FlowBundle> {
  return bundleOf(join(VARIANTS, name));
}
