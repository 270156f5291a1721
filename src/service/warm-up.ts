/**
 * Observations that go the robots' whole way before the service is ready, so that the first robot does not wait for code that has never
 * run. They are handled by an app beside the real one, whose store keeps nothing. The engine computes them with a model on `echo`, which
 * it does not count.
 */

import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { newKey } from "../account/key.ts";
import type { NewAccount } from "../account/store/accounts.ts";
import type { NewKey } from "../account/store/keys.ts";
import { exactSize } from "../bundle/describe.ts";
import type { Manifest, Parity } from "../bundle/manifest.ts";
import type { Bundle } from "../bundle/read.ts";
import { Drills } from "../drill.ts";
import type { Engine } from "../engine/engine.ts";
import { appOf } from "../http/app.ts";
import type { Bodies } from "../http/bodies.ts";
import { EXAMPLE_FRAMES, EXAMPLE_INSTRUCTION } from "../robot/docs/example.ts";
import { robotHttp } from "../robot/http/routes.ts";
import { restingState } from "../robot/state.ts";
import { systemClock } from "../std/clock.ts";
import { Problem } from "../std/problem.ts";
import { type Run, slicesOf } from "../store/domain.ts";
import { StoreDown, type WriteCall } from "../store/store.ts";
import { build, type Ports } from "./build.ts";
import { DOMAINS, type Store } from "./domains.ts";
import type { PlannedModel } from "./models.ts";

/** The first one runs all code once; with the others the compiler gets to the hottest of it. */
const OBSERVATIONS = 8;
/** A service that has not warmed up by then is ready without. */
const MS_MAX = 5_000;
/** The example is padded to this size, because other code reads the large bodies of real cameras. */
const BODY_BYTES_MIN = 200_000;
const SILENT = { info: () => {}, error: () => {} };

const ACCOUNT: NewAccount = {
  id: "acct_warm-up",
  email: "warm-up@localhost",
  createdAt: 0,
  credit: 1n << 60n,
  verified: true,
};

/** How the writes of an observation end when all goes well. */
const OUTCOMES: Readonly<Record<string, unknown>> = { "charges.hold": "held", "robot.settleChunk": "kept" };

/** The parts of the real service that are used. */
interface Loan {
  readonly engine: Engine;
  readonly bodies: Bodies;
  readonly store: Pick<Store, "accounts" | "robot" | "warmUp">;
}

/** Resolves with a sentence when it failed. Ends early when `isOver`, and in any case within a bound. */
export async function warmUp(
  lent: Loan,
  plan: readonly PlannedModel[],
  isOver: () => boolean,
): Promise<string | undefined> {
  const planned = plan.find(({ bundle }) => !bundle.manifest.stateful) ?? plan[0];
  if (!planned) return undefined;
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const disarm = systemClock.after(MS_MAX, () => resolve(`it had not ended after ${MS_MAX} ms`));
  return await Promise.race([observed(lent, planned, isOver), late]).finally(disarm);
}

async function observed(
  { engine, bodies, store: real }: Loan,
  planned: PlannedModel,
  isOver: () => boolean,
): Promise<string | undefined> {
  const alone = { device: "echo", replicas: 1, slots: 1, parkedBytesMax: 0, counted: false } as const;
  const model = await engine.load({ ...planned, ...alone });
  if (model instanceof Problem) return model.message;
  try {
    const { key, record } = newKey(0);
    const written: WriteCall[] = [{ key: "accounts.accountAdd", argument: ACCOUNT }];
    const ports: Ports = {
      clock: systemClock,
      log: SILENT,
      store: storeOf({ ...record, accountId: ACCOUNT.id, name: "" }, real, written),
    };
    const { robot, http, core } = build({ chunkMs: 10_000, signUpOpen: false, drills: new Drills() }, ports);
    robot.catalog.add(planned.bundle.manifest, planned.rates, model);
    const app = appOf({ ...http, bodies }, [robotHttp({ robot, starts: core.starts })]);
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const frames = await framesOf(planned.bundle);
    for (let step = 0; step < OBSERVATIONS && !isOver(); step += 1) {
      const body = observation(planned.bundle.manifest, frames, step);
      const request = new Request("http://localhost/v1/chat/completions", { method: "POST", headers, body });
      const response = await app.handle(request);
      const text = await response.text();
      if (response.status !== 200) return `observation ${step} was answered with ${response.status}: ${text}`;
    }
    // The writer prepares their statements, and takes the writes back.
    await real.warmUp?.(written);
    return undefined;
  } finally {
    await model.unload();
  }
}

/** A store that knows one key, reads from the real one, and adds what would have been written to `written`. */
function storeOf(key: NewKey, real: Loan["store"], written: WriteCall[]): Ports["store"] {
  const down: Run = () => async () => new StoreDown("nothing is kept while the service warms up");
  const note: Run = (operation) => async (argument) => {
    written.push({ key: operation.key, argument });
    // What the operation answers (domain.ts); its type is lost in the table.
    return OUTCOMES[operation.key] as never;
  };
  const { accounts, robot, ...others } = slicesOf(DOMAINS, down, note);
  const keyByPublicId = async (publicId: string) => {
    await real.accounts.keyByPublicId(publicId);
    return { ...key, lastUsedAt: undefined, revokedAt: undefined };
  };
  const { sessionLastAt, observation } = real.robot;
  return {
    ...others,
    accounts: { ...accounts, keyByPublicId },
    robot: { ...robot, sessionLastAt, observation },
    ping: async () => undefined,
  };
}

/** Data URLs: the frames of the documents, or for a model that takes frames of one size alone those of its parity vectors. */
async function framesOf({ manifest, paths }: Bundle): Promise<readonly string[]> {
  const file = exactSize(manifest) && paths.get(manifest.parity.file);
  if (!file) return EXAMPLE_FRAMES;
  const { observations }: Parity = JSON.parse(await readFile(file, "utf8"));
  const names = observations[0]?.frames ?? [];
  const jpegs = await Promise.all(names.map((name) => readFile(join(dirname(file), name), "base64")));
  return jpegs.map((jpeg) => `data:image/jpeg;base64,${jpeg}`);
}

/** The body of a session's step. */
function observation(
  { id, cameras, frames, state, action }: Manifest,
  pictures: readonly string[],
  step: number,
): string {
  const count = cameras.length * (step === 0 ? frames.first : frames.later);
  const images = Array.from({ length: count }, (_, at) => ({
    type: "image_url",
    image_url: { url: pictures[at % pictures.length] },
  }));
  const body = {
    session_id: "warm-up",
    model: id,
    messages: [{ role: "user", content: [{ type: "text", text: EXAMPLE_INSTRUCTION }, ...images] }],
    robot_state: restingState(state.kind, state, action),
  };
  return JSON.stringify(body).padEnd(BODY_BYTES_MIN);
}
