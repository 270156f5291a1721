/** What a mistake with a published checkpoint is. */
import type { Stage } from "../../../src/measure/golden/stages.ts";

/** What is wrong, in which layouts, how it is put in, and the stage or the words that say so. */
export type Mistake<How> = readonly [what: string, layouts: readonly string[], how: How, caught: Stage | RegExp];

export const [LEROBOT, OPENPI, ACT, SMOLVLA] = ["pi05-lerobot", "pi05-openpi", "act", "smolvla"] as const;
export const PI05 = [LEROBOT, OPENPI];
export const FLOWS = [...PI05, SMOLVLA];
export const ALL: readonly string[] = [...FLOWS, ACT];
