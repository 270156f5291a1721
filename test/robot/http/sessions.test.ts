/** Sessions over HTTP: ending one, memory slots, the turns of their inferences. */
import { expect, test } from "bun:test";
import { present } from "../../../src/std/assert.ts";
import { memoryOf } from "../../engine/memory.ts";
import { imagePart, observation, STATEFUL, type Stage, stage, textPart } from "../stage.ts";
import { failure, settle } from "./outcome.ts";

const later = [textPart(), ...Array.from({ length: 12 }, () => imagePart())];

function episode(session_id: string, step: number): Record<string, unknown> {
  const body = observation({ model: STATEFUL, session_id });
  return step === 0 ? body : { ...body, messages: [{ role: "user", content: later }] };
}

function slotsFree(at: Stage): number | undefined {
  return at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount;
}

async function end(at: Stage, path: string, key = at.key): Promise<Response> {
  return await at.send(path, { method: "DELETE", headers: { authorization: `Bearer ${key}` } });
}

const model = encodeURIComponent(STATEFUL);

test("DELETE /v1/robot/sessions/{session_id}?model=ID ends a session at once; 204 always", async () => {
  const at = await stage();
  await at.chat(episode("a b/ü", 0));
  expect(slotsFree(at)).toBe(3);
  const path = `/v1/robot/sessions/${encodeURIComponent("a b/ü")}`;
  const answers = [
    await end(at, `${path}?model=none`),
    await end(at, path),
    await end(at, `${path}?model=${model}`),
    await end(at, `${path}?model=${model}`),
    await end(at, `/v1/robot/sessions/none?model=${model}`),
  ];
  expect(await Promise.all(answers.map(async (answer) => [answer.status, await answer.text()]))).toEqual(
    answers.map(() => [204, ""]),
  );
  expect(slotsFree(at)).toBe(4);
  expect(await failure(await at.chat(episode("a b/ü", 1)))).toMatchObject({ status: 410, code: "session_expired" });
});

test("DELETE of a session needs a key, and reaches those of its account alone", async () => {
  const at = await stage();
  await at.chat(episode("s", 0));
  const refused = await end(at, `/v1/robot/sessions/s?model=${model}`, "none");
  expect(await failure(refused)).toMatchObject({ status: 401, code: "invalid_api_key" });
  expect(slotsFree(at)).toBe(3);
});

test("an episode's memory: committed with the reply, as it was after a failure, gone when the session expires", async () => {
  const at = await stage();
  const model = present(at.service.robot.catalog.models.get(STATEFUL)?.model, "a loaded model");
  const memory = () => memoryOf(model, 0).frames;
  const seen: unknown[] = [];
  await at.chat(episode("s", 0));
  seen.push(memory());
  at.engine.script.run = async () => at.engine.fault("no");
  await at.chat(episode("s", 1));
  seen.push(memory());
  at.engine.mend();
  await at.chat(episode("s", 1));
  seen.push(memory(), slotsFree(at));
  at.clock.advance(60_000);
  at.service.robot.sessions.sweep();
  expect([...seen, memory(), slotsFree(at)]).toEqual([1, 1, 2, 3, 0, 4]);
});

test("a cancelled inference holds its session until the engine has let go of it, and then the session goes on", async () => {
  const at = await stage();
  await at.chat(episode("s", 0));
  at.engine.script.run = () => new Promise(() => {});
  const pending = at.chat(episode("s", 1));
  await settle();
  at.clock.advance(10_000);
  expect(await failure(await pending)).toMatchObject({ status: 503, code: "engine_unavailable" });
  at.engine.mend();
  const response = await at.chat({ ...episode("s", 1), expected_step: 1 });
  expect([response.status, response.headers.get("x-session-step")]).toEqual([200, "1"]);
});

test("inferences of one account share a turn, those of different accounts do not", async () => {
  const at = await stage();
  await at.chat(observation());
  await at.chat(observation({ session_id: "s" }));
  const turns = at.engine.observations.map(({ turn }) => turn);
  expect([new Set(turns).size, turns[0]]).toEqual([1, Bun.hash.crc32("acct_1")]);
});
