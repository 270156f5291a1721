/** Two robots that use one session_id without `expected_step`: told apart by their keys, and nothing else is taken for two robots. */
import { expect, test } from "bun:test";
import { Peer } from "../socket/peer.ts";
import { addKey, observation, type Stage, stage } from "../stage.ts";
import { failure } from "./outcome.ts";

/** `chat` with another key of the stage's account, and that key. */
async function second(at: Stage) {
  const key = await addKey(at.store, "acct_1");
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return { key, chat: (body: object) => at.chat(body, { headers }) };
}

const next = (fields: object = {}) => observation({ session_id: "s", ...fields });

/** The step that was taken, or why none was. */
async function told(response: Response): Promise<string> {
  return response.headers.get("x-session-step") ?? (await failure(response)).code;
}

test("two keys that drive one session in turn: the second one is told, before the model sees its frames", async () => {
  const at = await stage();
  const other = await second(at);
  expect(await told(await at.chat(next()))).toBe("0");
  const refused = await other.chat(next());
  const { error } = (await refused.clone().json()) as { error: { message: string } };
  expect(await failure(refused)).toEqual({ status: 409, code: "session_step_conflict", param: "expected_step" });
  expect(error.message).toContain("two robots");
  expect(await told(await at.chat(next()))).toBe("1");
  expect([at.engine.observations.length, at.engine.framesHeld]).toEqual([2, 0]);
});

test("with expected_step either goes on, and then the first one is told", async () => {
  const at = await stage();
  const other = await second(at);
  expect(await told(await at.chat(next()))).toBe("0");
  expect(await told(await other.chat(next({ expected_step: 1 })))).toBe("1");
  expect(await told(await at.chat(next()))).toBe("session_step_conflict");
  expect(await told(await at.chat(next({ expected_step: 1 })))).toBe("session_step_conflict");
  expect(await told(await at.chat(next({ expected_step: 2 })))).toBe("2");
  expect(await told(await at.chat(next()))).toBe("3");
});

test("an inference that failed has driven nothing, and a replay asks nothing", async () => {
  const at = await stage();
  const other = await second(at);
  expect(await told(await at.chat(next({ observation_id: "a" })))).toBe("0");
  at.engine.script.run = async () => at.engine.fault("no");
  expect(await told(await other.chat(next({ expected_step: 1 })))).toBe("model_failure");
  at.engine.mend();
  expect(await told(await other.chat(next({ observation_id: "a" })))).toBe("0");
  expect(await told(await at.chat(next()))).toBe("1");
});

test("one robot is never taken for two: a pool of connections, a socket and back, another key's socket that was told its step", async () => {
  const at = await stage();
  const other = await second(at);
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => at.handle(request) });
  const url = `${server.url.origin}/v1/chat/completions`;
  const headers = { authorization: `Bearer ${at.key}`, "content-type": "application/json" };
  for (const [step, connection] of ["keep-alive", "close", "keep-alive", "close"].entries()) {
    const init = { method: "POST", headers: { ...headers, connection }, body: JSON.stringify(next()) };
    expect(await told(await fetch(url, init))).toBe(String(step));
  }
  await server.stop(true);
  for (const [step, key] of [at.key, other.key].entries()) {
    const one = new Peer(at, key);
    expect(await one.open({ session_id: "s" })).toMatchObject({ type: "session.opened", step: 4 + step });
    expect(await one.act()).toMatchObject({ type: "action_chunk", step: 4 + step });
    one.episode.dropped();
  }
  expect(await told(await other.chat(next()))).toBe("6");
});
