/** A bundle that is held to another bound on its rows than its manifest has: for commands that compute and measure, never for a service of others. */
import type { Bundle } from "../engine/engine.ts";

/** Rows may differ by `within`. A bundle whose rows nobody has computed stays as it is: there is nothing to compare with. */
export function withTolerance({ manifest, paths }: Bundle, within: number | undefined): Bundle {
  if (within === undefined || manifest.parity.unproved) return { manifest, paths };
  return { paths, manifest: { ...manifest, parity: { ...manifest.parity, tolerance: within } } };
}
