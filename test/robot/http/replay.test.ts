/** Contract section 2: a robot may repeat over HTTP what it sent on a socket, and the other way round, in any form of answer. */
import { expect, test } from "bun:test";
import { peer } from "../socket/peer.ts";
import { imagePart, jointState, MODEL, textPart } from "../stage.ts";
import { failure } from "./outcome.ts";

const ROWS = 30;

/** Over HTTP the observation that a peer's `act` sends in the session "s". */
const repeated = {
  model: MODEL,
  messages: [{ role: "user", content: [textPart(), imagePart(), imagePart(), imagePart()] }],
  robot_state: jointState,
  session_id: "s",
  observation_id: "o",
};

async function contentOf(response: Response) {
  const body = (await response.json()) as { id: string; choices: [{ message: { content: string } }] };
  return { id: body.id, chunk: JSON.parse(body.choices[0].message.content) as Record<string, unknown> };
}

test("what a socket sent, with rows as bytes, is repeated over HTTP as JSON and as a stream", async () => {
  const one = await peer();
  await one.open({ session_id: "s", actions_format: "f32" });
  one.frames();
  await one.observe({ observation_id: "o" });
  const [text, bytes] = one.wire.out.slice(-2) as [string, Uint8Array];
  const first = JSON.parse(text) as Record<string, unknown>;
  // The socket still holds the session: the replay comes before the session's checks.
  const response = await one.at.chat(repeated);
  expect([response.status, response.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  const { id, chunk } = await contentOf(response);
  const { actions, ...fields } = chunk;
  const { type: _, observation_id: __, rows, usage: ___, ...sent } = first;
  expect({ id, ...fields } as Record<string, unknown>).toEqual(sent);
  expect(rows).toBe(ROWS);
  const values = new Float32Array(bytes.slice().buffer);
  expect((actions as number[][]).flat().map(Math.fround)).toEqual([...values]);
  expect(await (await one.at.chat({ ...repeated, stream: true })).text()).toContain(`"id":"${id}"`);
  expect([one.at.engine.observations.length, one.at.store.kept.length]).toEqual([1, 1]);
});

test("what HTTP sent is repeated on a socket, as JSON and as bytes", async () => {
  for (const actions_format of ["json", "f32"] as const) {
    const one = await peer();
    const { id, chunk } = await contentOf(await one.at.chat(repeated));
    await one.open({ session_id: "s", actions_format });
    const heard = await one.act({ observation_id: "o" }).catch(() => undefined);
    const message = actions_format === "json" ? heard : (JSON.parse(String(one.wire.out.at(-2))) as typeof heard);
    expect(message).toMatchObject({ type: "action_chunk", id, observation_id: "o", replayed: true, step: 0 });
    if (actions_format === "json") expect(message?.actions).toEqual(chunk.actions);
    else expect(one.wire.out.at(-1)).toHaveLength(ROWS * 14 * 4);
    // The next observation of the session is not held up by the repeat.
    if (actions_format === "json") expect(await one.act()).toMatchObject({ type: "action_chunk", step: 1 });
    expect(one.at.store.kept.length).toBe(actions_format === "json" ? 2 : 1);
  }
});

test("other content over the other transport is idempotency_conflict", async () => {
  const one = await peer();
  await one.open({ session_id: "s" });
  await one.act({ observation_id: "o" });
  for (const changes of [{ seed: 1 }, { action_horizon: 2 }, { num_inference_steps: 2 }, { expected_step: 0 }]) {
    expect(await failure(await one.at.chat({ ...repeated, ...changes }))).toMatchObject({
      status: 409,
      code: "idempotency_conflict",
    });
  }
  expect(one.at.engine.observations.length).toBe(1);
});
