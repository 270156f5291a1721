/** Expectations of the end of a request. */
import { expect } from "bun:test";
import type { Script } from "../../fake-engine.ts";
import { observation, type Stage } from "../stage.ts";

/** A right request of a session. */
export const session = observation({ session_id: "s" });

/** The error of a failed answer. */
export async function failure(
  response: Response,
): Promise<{ status: number; code: string; param: string | undefined }> {
  const body = (await response.json()) as { error: { code: string; param?: string } };
  return { status: response.status, code: body.error.code, param: body.error.param };
}

/** Nothing is held, and, with an engine that works, the session goes on with `step`. */
export async function expectClean(at: Stage, step: number): Promise<void> {
  await Bun.sleep(0);
  const { engine, clock, service } = at;
  engine.mend();
  const { ingress } = service.http;
  const { admission } = service.robot;
  expect([engine.framesHeld, engine.runsHeld, clock.armed, ingress.bytes]).toEqual([0, 0, 0, 0]);
  expect([admission.held, admission.waiting, service.robot.forecast.inside]).toEqual([0, 0, 0]);
  const account = await at.store.accounts.accountById("acct_1");
  expect(account).toMatchObject({ held: 0n });
  const response = await at.chat(session);
  expect([response.status, response.headers.get("x-session-step")]).toEqual([200, String(step)]);
}

/** Lets settled promises go on, without waiting for time. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
  await Bun.sleep(0);
}

/** Keeps back what the model answers, chunks by default, until the result is called. */
export function holdModel(
  { engine }: Stage,
  answer: Script["run"] = async (observed) => engine.chunk(observed),
): () => void {
  const gate = Promise.withResolvers<void>();
  const { run } = engine.script;
  engine.script.run = async (observed) => {
    await gate.promise;
    return await answer(observed);
  };
  return () => {
    engine.script.run = run;
    gate.resolve();
  };
}
