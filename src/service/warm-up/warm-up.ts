/**
 * Observations that go the robots' whole way before the service is ready, so that the first robot does not wait for code that has never
 * run: connection, route, key, body, checks, session, money, decode, queue, result, print.
 *
 * They go through a service of its own, put together as the real one is: with a listener, a key, sessions, limits, metrics and a log of its
 * own, and a store that keeps nothing. The real one lends its threads that read bodies, and its engine: a model on `echo` that nothing
 * counts computes zeros on the threads that all models share. What would have been written the real store writes and takes back.
 */
import { makeKey } from "../../account/key.ts";
import { Drills } from "../../drill.ts";
import type { Bodies } from "../../engine/bodies.ts";
import type { Engine, Model } from "../../engine/engine.ts";
import { appOf } from "../../http/app.ts";
import { listen } from "../../http/listen.ts";
import { robotHttp } from "../../robot/http/routes.ts";
import { systemClock } from "../../std/clock.ts";
import { Failure } from "../../std/failure.ts";
import { Problem } from "../../std/problem.ts";
import { build } from "../build.ts";
import type { Store } from "../domains.ts";
import type { PlannedModel } from "../models.ts";
import { Connection } from "./connection.ts";
import { observationsOf } from "./observation.ts";
import { WarmStore } from "./store.ts";

/** The first one meets all code for the first time; with the others the compiler gets to the hottest of it. */
const OBSERVATIONS = 8;
/** A service that has not warmed up by then is ready without. */
const MS_MAX = 5_000;
const HOST = "127.0.0.1";
const SILENT = { info: () => {}, error: () => {} };

/** What the real service lends. */
interface Lent {
  readonly engine: Engine;
  readonly bodies: Bodies;
  readonly store: Pick<Store, "accounts" | "robot" | "warmUp">;
}

/** Says in a sentence why it came to nothing; the service works without it. Ends early when `isOver`, and in any case within a bound. */
export async function warmUp(
  lent: Lent,
  plan: readonly PlannedModel[],
  isOver: () => boolean,
): Promise<string | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const disarm = systemClock.after(MS_MAX, () => resolve(`it had not ended after ${MS_MAX} ms`));
  return await Promise.race([warmed(lent, plan, isOver), late]).finally(disarm);
}

async function warmed(lent: Lent, plan: readonly PlannedModel[], isOver: () => boolean): Promise<string | undefined> {
  const planned = plan.find(({ bundle }) => !bundle.manifest.stateful) ?? plan[0];
  if (!planned) return undefined;
  const model = await lent.engine.load({
    ...planned,
    device: "echo",
    replicas: 1,
    slots: 1,
    parkedBytesMax: 0,
    counted: false,
  });
  if (model instanceof Failure) return model.message;
  try {
    return await served(lent, { ...planned, model }, isOver);
  } finally {
    await model.unload();
  }
}

async function served(
  lent: Lent,
  { model, rates }: PlannedModel & { readonly model: Model },
  isOver: () => boolean,
): Promise<string | undefined> {
  const key = makeKey();
  const { store, written } = new WarmStore(key, lent.store);
  const settings = { chunkMs: 10_000, signUpOpen: false, drills: new Drills() };
  const { robot, http, core } = build(settings, { clock: systemClock, log: SILENT, store });
  robot.catalog.add(model.manifest, rates, model);
  const app = appOf({ ...http, bodies: lent.bodies }, [robotHttp({ robot, starts: core.starts.chat })]);
  const listener = listen(app, { host: HOST, port: 0 });
  if (listener instanceof Problem) return listener.message;
  try {
    const connection = await Connection.to({ hostname: HOST, port: listener.port });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const bodyOf = observationsOf(model.manifest);
    for (let step = 0; step < OBSERVATIONS && !isOver(); step += 1) {
      const { status, text } = await connection.post("/v1/chat/completions", headers, bodyOf(step));
      if (status !== 200) return `observation ${step} was answered with ${status}: ${text}`;
    }
    connection.close();
    await lent.store.warmUp?.(written);
    return undefined;
  } finally {
    await listener.stop();
  }
}
