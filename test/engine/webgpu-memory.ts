/** Sessions whose memory lies on the device: parked and brought back, cancelled, discarded and dropped, beside one that was alone. */

import type { ChunkResult, Engine } from "../../src/engine/engine.ts";
import { present } from "../../src/std/assert.ts";
import { episodeOf } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { memoryOf } from "./memory.ts";
import { Opened, ok } from "./opened.ts";

/** Observations of each session: one that finds an empty memory, and two that read it. */
const STEPS = 3;
const SESSIONS = 2;

/** What was found; every list is of comparisons that must hold. */
export interface Remembered {
  readonly name: string;
  readonly places: number;
  readonly placesOnDevice: number;
  readonly hostMemoryBecause: string | null;
  /** Chunks and memories of sessions that take turns on one place, in it and parked, from those of one that was alone. */
  readonly parked: readonly boolean[];
  /** Memories after inferences that were not kept. */
  readonly discarded: readonly boolean[];
  /** A session that is dropped while another one takes its place, and the next one in its slot. */
  readonly dropped: readonly boolean[];
  /** What slots and parked blocks hold in the end more than before: nothing. */
  readonly held: readonly number[];
}

const alike = (one: ChunkResult, other: ChunkResult) =>
  Buffer.from(one.actions.buffer).equals(Buffer.from(other.actions.buffer));

const holdings = (engine: Engine): number[] => {
  const { slots_held, memory_bytes_held, slots_parked, parked_bytes_held } = engine.stats();
  return [slots_held, memory_bytes_held, slots_parked, parked_bytes_held];
};

/** What two sessions remember that share one place on `device`, which has its own memory. */
export async function remembered(
  engine: Engine,
  name: string,
  bundle: FlowBundle,
  device: string,
): Promise<Remembered> {
  const given = (await episodeOf(bundle)).slice(0, STEPS + 1).map((golden) => golden.given);
  const at = (step: number) => present(given[step], "an observation");
  const clean: { readonly chunk: ChunkResult; readonly frames: number; readonly digest: bigint }[] = [];
  const alone = await Opened.with(engine, bundle, { slots: 1, device });
  for (let step = 0; step < STEPS; step += 1) {
    const chunk = await alone.give(at(step), { slot: 0 });
    clean.push({ chunk, ...memoryOf(alone.model, 0) });
  }
  await alone.model.unload();
  // Other models may hold sessions.
  const before = holdings(engine);
  const shared = await Opened.with(engine, bundle, { slots: 1, parkedBytesMax: "default", device });
  const { places, placesOnDevice, hostMemoryBecause } = shared.model.sessionMemory;
  const same = (slot: number, step: number) => {
    const [{ frames, digest }, own] = [present(clean[step], "a clean step"), memoryOf(shared.model, slot)];
    return own.frames === frames && own.digest === digest;
  };
  const follows = async (slot: number, step: number) =>
    alike(await shared.give(at(step), { slot }), present(clean[step], "a clean step").chunk) && same(slot, step);

  const parked: boolean[] = [];
  for (let step = 0; step < STEPS; step += 1) {
    for (let slot = 0; slot < SESSIONS; slot += 1) parked.push(await follows(slot, step));
    for (let slot = 0; slot < SESSIONS; slot += 1) parked.push(same(slot, step));
  }
  const discarded: boolean[] = [];
  for (const end of ["abort", "cancel", "fail"] as const) {
    const blocker = await shared.run(at(STEPS), { slot: 1 });
    const run = await shared.run(at(STEPS), { slot: 0, ...(end === "fail" && { failStep: 0 }) });
    if (end === "cancel") run.cancel();
    await run.result;
    ok(await blocker.result);
    for (const one of [blocker, run]) {
      one.abort();
      await one.released;
    }
    for (let slot = 0; slot < SESSIONS; slot += 1) discarded.push(same(slot, STEPS - 1));
  }
  const dropped: boolean[] = [];
  const run = await shared.run(at(STEPS), { slot: 1 });
  shared.model.sessionDrop(0);
  ok(await run.result);
  run.abort();
  await run.released;
  dropped.push(same(1, STEPS - 1), await follows(0, 0), same(1, STEPS - 1));
  for (let slot = 0; slot < SESSIONS; slot += 1) shared.model.sessionDrop(slot);
  const after = holdings(engine);
  await shared.model.unload();
  const held = after.map((count, index) => count - present(before[index], "the same counter"));
  return {
    name,
    places,
    placesOnDevice,
    hostMemoryBecause: hostMemoryBecause ?? null,
    parked,
    discarded,
    dropped,
    held,
  };
}
