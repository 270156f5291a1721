/** Golden values of a bundle: observations with noise, and what the publisher's own code computed for them at every stage. */
import type { Golden, Manifest } from "./manifest.ts";

/** What of a manifest its golden cases must fit. */
type Fitting = Pick<Manifest, "memory" | "frames" | "state"> & Naming & { readonly files: readonly { path: string }[] };
type Naming = { readonly parity: { readonly golden?: { readonly cases: string } } };

/** The first rule that golden cases break: a JSON path, what was found and what was expected. */
export function goldenFault(manifest: Fitting, { cases }: Golden): string | undefined {
  const { memory, frames, state, files } = manifest;
  if (memory !== null || frames.later !== 1)
    return "/cases: found some, expected none for a model with memory or several frames";
  for (const [number, { state: values, frames: named }] of cases.entries()) {
    const at = `/cases/${number}`;
    if (values.length !== state.columns.length)
      return `${at}/state: found ${values.length} values, expected ${state.columns.length}`;
    const unlisted = Object.entries(named).find(
      ([, name]) => name !== null && !files.some(({ path }) => path === goldenFrame(manifest, name)),
    );
    if (unlisted) return `${at}/frames/${unlisted[0]}: found ${unlisted[1]}, expected a file listed in the manifest`;
  }
  return undefined;
}

/** Whether this bundle can be given the case: pictures of all its cameras, and of no other. */
export function isPlayable({ cameras }: Manifest, { frames }: Golden["cases"][number]): boolean {
  const seen = Object.keys(frames).filter((name) => frames[name] !== null);
  return seen.length === cameras.length && cameras.every((name) => seen.includes(name));
}

/** Float32 sums in another order than the publisher's. */
const LIMIT = 1e-4;

/**
 * How far off may be what a bundle's graphs are given, and what they compute. The latter is infinite, which is no verdict, where weights or
 * arithmetic are rounded and the golden values are not: rounding moves a stage as far as a mistake does.
 */
export function goldenLimits({ compute, parity }: Pick<Manifest, "compute" | "parity">) {
  const isOther = compute !== undefined || parity.golden?.rounded === true;
  return { given: LIMIT, computed: isOther ? Number.POSITIVE_INFINITY : LIMIT };
}

/** The path in the bundle of a frame of a case. */
export function goldenFrame({ parity }: Naming, name: string): string {
  const cases = parity.golden?.cases ?? "";
  return cases.slice(0, cases.lastIndexOf("/") + 1) + name;
}
