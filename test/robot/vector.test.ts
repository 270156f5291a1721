/** A robot that is not a YAM, under an id of its operator's own: HTTP, a socket, repeats over both, money (contract section 12). */
import { expect, test } from "bun:test";
import { failure } from "./http/outcome.ts";
import { type Heard, money, Peer } from "./socket/peer.ts";
import {
  cartesianState,
  jointState,
  RATES,
  type Stage,
  stage,
  VECTOR,
  vectorObservation,
  vectorState,
} from "./stage.ts";

/** 100 prompt tokens and 50 rows. */
const COST = 100n * RATES.prompt + 50n * RATES.completion;

async function chunkOf(response: Response) {
  const body = (await response.json()) as { choices: [{ message: { content: string } }]; usage: object };
  return { ...JSON.parse(body.choices[0].message.content), usage: body.usage } as Heard;
}

/** A peer's session on the model. */
async function episode(at: Stage, fields: object = {}) {
  const one = new Peer(at);
  const opened = await one.open({ model: VECTOR, instruction: "pick the cube", ...fields });
  const act = async (changes: object = {}): Promise<Heard> => {
    one.frames([0, 1]);
    await one.observe({ robot_state: vectorState, ...changes });
    return one.last;
  };
  return { one, opened, act };
}

test("over HTTP the vector reaches the engine in its order, and the chunk is of the manifest's rows, rate and space", async () => {
  const at = await stage();
  const chunk = await chunkOf(await at.chat(vectorObservation()));
  expect(chunk).toMatchObject({ step: 0, dt: 1 / 20, action_dim: 7, action_space: "vector" });
  expect(chunk.usage).toMatchObject({ completion_tokens: 50 });
  expect((chunk.actions as number[][]).map((row) => row.length)).toEqual(Array(50).fill(7));
  expect([...(at.engine.observations[0]?.state ?? [])]).toEqual(vectorState.state.map(Math.fround));
  expect((await money(at)).paid).toBe(COST);
  expect(await chunkOf(await at.chat(vectorObservation({ action_horizon: 50 })))).toMatchObject({ step: 0 });
});

test("a value that no gripper of a YAM could have is one like others, and other arrays are not read", async () => {
  const { chat } = await stage();
  const robot_state = { ...cartesianState, ...jointState, joint_position: "x", state: Array(7).fill(-3.402823e38) };
  expect((await chat(vectorObservation({ robot_state }))).status).toBe(200);
});

test("a state of another shape is refused with the number of values that the model has", async () => {
  const { chat } = await stage();
  for (const [robot_state, param] of [
    [{ state: [1, 2] }, "robot_state.state"],
    [jointState, "robot_state.state"],
    [[1, 2, 3, 4, 5, 6, 7], "robot_state"],
  ] as const) {
    const message = `${param} does not fit this model; send state of 7 finite numbers`;
    const error = { code: "state_shape_mismatch", param, message };
    const response = await chat(vectorObservation({ robot_state }));
    expect([response.status, await response.json()]).toMatchObject([400, { error }]);
  }
});

test("the description names camera order, columns and units", async () => {
  const { chat } = await stage();
  const response = await chat({ model: VECTOR, messages: [{ role: "user", content: "?" }] });
  const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] };
  const { content } = choices[0].message;
  expect(content).toContain("Cameras, in this order: front view, wrist.");
  expect(content).toContain("State: vector; state: 7 values (joint_1 [deg], joint_2 [deg]");
  expect(content).toContain("action_dim 7, action_space vector, absolute");
});

test("on a socket an episode goes on from chunk to chunk, and a wrong state takes no step", async () => {
  const at = await stage();
  const { opened, act } = await episode(at);
  expect(opened).toMatchObject({
    ...{ type: "session.opened", model: VECTOR, cameras: ["front view", "wrist"], next_frames_per_camera: 1 },
    ...{ rows: 50, dt: 1 / 20, action_dim: 7, action_space: "vector" },
  });
  expect(await act()).toMatchObject({ type: "action_chunk", step: 0, action_space: "vector" });
  const refused = { type: "error", code: "state_shape_mismatch", closing: false };
  for (const robot_state of [jointState, { state: [] }]) expect(await act({ robot_state })).toMatchObject(refused);
  expect(await act({ action_horizon: 2 })).toMatchObject({ type: "action_chunk", step: 1 });
  expect((await money(at)).paid).toBe(2n * COST);
});

test("an observation of a socket may be repeated over HTTP, once charged; another state under its id is a conflict", async () => {
  const at = await stage();
  const { one, act } = await episode(at, { session_id: "s" });
  const first = await act({ observation_id: "o", expected_step: 0 });
  one.episode.dropped();
  const again = { session_id: "s", observation_id: "o", expected_step: 0 };
  const replay = await at.chat(vectorObservation(again));
  expect(replay.headers.get("idempotent-replayed")).toBe("true");
  expect((await chunkOf(replay)).actions).toEqual(first.actions as never);
  const other = { robot_state: { state: vectorState.state.with(6, 0.6) } };
  expect(await failure(await at.chat(vectorObservation({ ...again, ...other })))).toMatchObject({
    code: "idempotency_conflict",
  });
  expect((await money(at)).paid).toBe(COST);
});
