/** Runs histories by number, on the fake engine or on a native one. */
import sharp from "sharp";
import type { Bundle } from "../../src/bundle/read.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { Fault } from "../../src/engine/fault.ts";
import { openEngine } from "../../src/engine/native.ts";
import { armBundle, seventhBundle } from "../bundle/seventh.ts";
import { ok } from "../engine/opened.ts";
import { FakeEngine, type KnownModel } from "../fake-engine.ts";
import { statefulManifest, vectorManifest } from "../robot/manifests.ts";
import { jpeg } from "../robot/stage.ts";
import { History, type Pictures } from "./history.ts";
import { Counts, traced } from "./trace.ts";
import { World } from "./world.ts";

/** Things that happen in one history, before everybody is let through to the end. */
const ACTIONS = 160;

/** What histories run on. */
export interface Ground {
  readonly name: string;
  /** The models of a new process: one with memory, then one without, whose robot is not a YAM. */
  models(): readonly KnownModel[];
  /** The model with memory once more, for inferences without faults over what a history has committed. */
  clean(): KnownModel;
  readonly pictures: Pictures;
  /** Whether a process may be killed while inferences are on their way; it may not if all histories share the engine. */
  readonly kills: boolean;
}

/** The fake engine: outcomes in no time. */
export function fakeGround(): Ground {
  return {
    name: "fake",
    models: () => {
      const engine = fakeEngine();
      return [engine.model(statefulManifest()), engine.model(vectorManifest())];
    },
    clean: () => fakeEngine().model(statefulManifest()),
    pictures: { good: jpeg(64), bad: jpeg(40) },
    kills: true,
  };
}

/** The native engine with two small bundles: every number is computed. Close it when all histories are run. */
export async function nativeGround(): Promise<Ground & { readonly engine: Engine }> {
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  const [world, arm] = [await seventhBundle("world-action"), await armBundle()];
  const load = async (bundle: Bundle, slots: number, parkedBytesMax: number | "default" = 0) => {
    const model = ok(await engine.load({ bundle, device: "cpu", replicas: 1, threads: 1, slots, parkedBytesMax }));
    return Object.assign(model, { manifest: bundle.manifest });
  };
  const [remembering, other, clean] = [
    // Two sessions share one place: an inference of one parks the other, whatever happens to that meanwhile.
    await load(world, 1, "default"),
    await load(arm, 1),
    await load(world, 1),
  ];
  const picture = { create: { width: 48, height: 32, channels: 3, background: "#a64" } } as const;
  const good = new Uint8Array(await sharp(picture).jpeg().toBuffer());
  return {
    name: "native",
    engine,
    models: () => [remembering, other],
    clean: () => clean,
    pictures: { good, bad: good.slice(0, good.length / 2) },
    kills: false,
  };
}

function fakeEngine(): FakeEngine {
  const engine = new FakeEngine();
  engine.slotsPerModel = 2;
  engine.script.decode = async (file) =>
    file.length < 50 ? new Fault("bad_image", "the frame is cut off") : undefined;
  engine.script.run = async (observed) =>
    observed.failStep === undefined ? engine.chunk(observed) : engine.fault("a drill");
  return engine;
}

/** Runs one history; the error of a broken one has its whole trace. */
export async function runHistory(ground: Ground, number: number): Promise<History> {
  const world = await World.open(() => ground.models(), `history ${number}`);
  const { pictures, kills } = ground;
  // In half of them the wall clock jumps by days, at a start and while the service runs.
  const jumps = number % 2 === 1;
  const options = { pictures, actions: ACTIONS, kills, jumps, clean: ground.clean() };
  const history = new History(world, `history ${number}`, options);
  return await traced(history, `${ground.name} ${number}`).finally(() => world.store.close());
}

/** What histories must have met, or they prove little. */
const EXPECTED = [
  ...["waited", "step", "replayed", "session_busy", "session_expired", "session_step_conflict", "instruction_changed"],
  ...[
    "image_count_mismatch",
    "invalid_image",
    "idempotency_conflict",
    "observation_outcome_unknown",
    "no_replica_free",
  ],
  ...["model_failure", "engine_unavailable", "metering_unavailable", "auth_unavailable", "billing_unavailable"],
];

const EXPECTED_OF_SOCKETS = [
  ...EXPECTED.slice(1),
  ...["opened", "closed", "invalid_camera", "invalid_json", "session_open", "session_missing"],
  ...["too_many_observations", "message_too_large"],
].map((name) => `socket ${name}`);

/** And where processes are killed. */
const KILLS = ["power lost", "killed with a settlement on its way that is kept"];

/** How requests ended. */
export class Outcomes extends Counts {
  constructor({ kills }: Pick<Ground, "kills">) {
    super([...EXPECTED, ...EXPECTED_OF_SOCKETS, ...(kills ? KILLS : [])]);
  }

  add({ trace, waited, world }: History): void {
    if (waited) this.count("waited");
    if (world.store.untold.length > 0) this.count("killed with a settlement on its way that is kept");
    for (const line of trace) {
      if (line === "the power is lost") this.count("power lost");
      const [, who, outcome] = /^(.)\d+ ← ([a-z_]+)/.exec(line) ?? [];
      if (outcome === undefined) continue;
      const where = who === "L" ? "socket " : "";
      this.count(`${where}${outcome}`);
      if (/, replayed\b/.test(line)) this.count(`${where}replayed`);
    }
  }
}
