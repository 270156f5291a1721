/** What a right request gets: response, headers, action chunk, usage, description. */
import { expect, test } from "bun:test";
import { manifest } from "../manifests.ts";
import { Peer } from "../socket/peer.ts";
import {
  CARTESIAN,
  cartesianState,
  imagePart,
  MODEL,
  observation,
  RATES,
  STATEFUL,
  stage,
  textPart,
  withContent,
} from "../stage.ts";
import { failure } from "./outcome.ts";

interface Completion {
  id: string;
  created: number;
  choices: { message: { content: string } }[];
  usage: Record<string, unknown>;
}

interface ActionChunk {
  session_id: string;
  step: number;
  actions: number[][];
  next_frames_per_camera: number;
  timing_ms: Record<string, number>;
}

async function chunkOf(response: Response): Promise<ActionChunk> {
  const body = (await response.json()) as Completion;
  return JSON.parse(body.choices[0]?.message.content ?? "");
}

test("the chat completion response is exactly the specification's", async () => {
  const { chat, clock } = await stage();
  const response = await chat(observation());
  const body = (await response.json()) as Completion;
  const content = body.choices[0]?.message.content;
  expect(response.status).toBe(200);
  expect(body as unknown).toEqual({
    id: response.headers.get("x-generation-id"),
    object: "chat.completion",
    created: Math.floor(clock.unixMs() / 1000),
    model: MODEL,
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens: 30,
      total_tokens: 130,
    },
  });
  expect(body.id).toMatch(/^gen_[0-9A-Za-z]{24}$/);
});

test("the action chunk is a JSON string of the specification's fields, in their order", async () => {
  const { chat } = await stage();
  const body = (await (await chat(observation())).json()) as Completion;
  const content = body.choices[0]?.message.content ?? "";
  const chunk = JSON.parse(content);
  const actions = Array.from({ length: 30 }, (_, row) =>
    Array.from({ length: 14 }, (_, column) => Number(Math.fround(row + column / 100).toPrecision(7))),
  );
  expect(chunk).toEqual({
    session_id: expect.stringMatching(/^anon-[0-9A-Za-z]{24}$/),
    step: 0,
    dt: 1 / 30,
    action_dim: 14,
    action_space: "joint_position",
    actions,
    next_frames_per_camera: 1,
    timing_ms: { decode: 0, queue: 2.002, prefill: 3.003, denoise: 4.004, encode: 0.005 },
  });
  expect(content).toBe(JSON.stringify(chunk));
});

test("headers: generation id, request id, stages; the step only with a session_id", async () => {
  const { chat } = await stage();
  const alone = await chat(observation());
  const named = await chat(observation({ session_id: "s" }));
  expect([alone.headers.get("x-session-step"), named.headers.get("x-session-step")]).toEqual([null, "0"]);
  expect(named.headers.get("server-timing")).toBe(
    "decode;dur=0, queue;dur=2.002, prefill;dur=3.003, denoise;dur=4.004, encode;dur=0.005, commit;dur=0",
  );
  expect(named.headers.get("x-request-id")).toMatch(/^req_/);
  expect([alone.headers.get("x-tendon-bundle"), named.headers.get("content-type")]).toEqual([null, "application/json"]);
});

test("encode includes serialising: the copy of the rows that the answer is printed from", async () => {
  const { chat, service } = await stage();
  // Each look at the clock takes half a millisecond.
  let nowMs = 0;
  Object.assign(service.robot, {
    clock: {
      ...service.core.clock,
      unixMs: () => 0,
      monotonicMs: () => (nowMs += 0.5),
      after: () => () => {},
    },
  });
  expect((await chunkOf(await chat(observation()))).timing_ms).toMatchObject({ encode: 0.505 });
});

test("a session goes on step by step with the frames that the chunk names", async () => {
  const { chat, engine } = await stage();
  const content = (frames: number) => [textPart(), ...Array.from({ length: 3 * frames }, () => imagePart())];
  const body = (frames: number) => withContent(content(frames), { model: STATEFUL, session_id: 'räume "1"' });
  const first = await chat(body(1));
  const firstChunk = await chunkOf(first);
  expect([firstChunk.session_id, firstChunk.step, firstChunk.next_frames_per_camera]).toEqual(['räume "1"', 0, 4]);
  expect(first.headers.get("x-tendon-bundle")).toBe("reference");
  expect((await chat(body(1))).status).toBe(400);
  const second = await chat({ ...body(4), expected_step: 1 });
  expect([second.headers.get("x-session-step"), (await chunkOf(second)).step]).toEqual(["1", 1]);
  expect(engine.framesPut).toBe(15);
  expect(engine.observations.map(({ step, frames }) => [step, frames.length])).toEqual([
    [0, 3],
    [1, 12],
  ]);
});

test("the engine gets instruction, state vector and seed", async () => {
  const { chat, engine } = await stage();
  const joint_position = Array.from({ length: 12 }, (_, i) => i);
  const content = [textPart("pick"), imagePart(), imagePart(), textPart("the cup"), imagePart()];
  const robot_state = { joint_position, gripper_position: [0.25, 0.75], cartesian_position: "ignored" };
  await chat(withContent(content, { robot_state, seed: 2 ** 53 - 1 }));
  expect(engine.observations[0]).toMatchObject({ instruction: "pick\nthe cup", step: 0, seed: 2 ** 53 - 1 });
  expect([...(engine.observations[0]?.state ?? [])]).toEqual([0, 1, 2, 3, 4, 5, 0.25, 6, 7, 8, 9, 10, 11, 0.75]);
});

test("a Cartesian model takes joint_position empty or absent, and grippers in native units", async () => {
  const { chat, engine } = await stage();
  for (const joint_position of [[], undefined, null]) {
    const robot_state = { ...cartesianState, joint_position };
    expect((await chat(observation({ model: CARTESIAN, robot_state }))).status).toBe(200);
  }
  expect(engine.observations[0]?.state.length).toBe(20);
  expect(engine.observations[0]?.state[9]).toBe(5);
});

test("action_horizon cuts rows; the usage counts what the model computed", async () => {
  const { chat } = await stage();
  const response = await chat(observation({ action_horizon: 3 }));
  const body = (await response.json()) as Completion;
  expect(JSON.parse(body.choices[0]?.message.content ?? "").actions.length).toBe(3);
  expect(body.usage).toMatchObject({ completion_tokens: 30, total_tokens: 130 });
});

/** `most`: the largest `action_horizon`. */
test.each([
  ["vendorE/pi0.5:yam", 50, 30],
  ["vendorE/pi0.5:yam", 12, 12],
  ["vendorX/long:yam", 64, 64],
])(
  "action_horizon is 1 to 30 on the six ids, to the model's rows on others: %s with %d rows, %d",
  async (id, rows, most) => {
    const at = await stage();
    const { chat, service, engine } = at;
    const base = manifest();
    const long = { ...base, id, action: { ...base.action, rows } };
    service.robot.catalog.add(long, RATES, engine.model(long));
    const rowsOf = async (changes: object) => {
      const response = await chat(observation({ model: long.id, ...changes }));
      const body = (await response.json()) as Completion;
      const { actions } = JSON.parse(body.choices[0]?.message.content ?? "") as ActionChunk;
      expect(body.usage).toMatchObject({ completion_tokens: rows });
      return actions.length;
    };
    expect([await rowsOf({}), await rowsOf({ action_horizon: most })]).toEqual([rows, most]);
    const outside = [0, most + 1];
    const code = "action_horizon_out_of_range";
    for (const action_horizon of outside)
      expect(await failure(await chat(observation({ model: id, action_horizon })))).toMatchObject({
        status: 400,
        code,
      });
    for (const action_horizon of outside)
      expect(await new Peer(at).open({ model: id, action_horizon })).toMatchObject({ code, closing: false });
    const one = new Peer(at);
    await one.open({ model: id, action_horizon: most });
    for (const action_horizon of outside)
      expect(await one.act({ action_horizon })).toMatchObject({ code, closing: false });
    expect((await one.act()).actions).toHaveLength(most);
  },
);

test("cache_reset is said when the episode's memory was started anew", async () => {
  const { chat, engine } = await stage();
  engine.script.run = async (observed) => ({ ...engine.chunk(observed), cacheReset: true, cachedTokens: 40 });
  const body = (await (await chat(observation())).json()) as Completion;
  expect(JSON.parse(body.choices[0]?.message.content ?? "")).toMatchObject({ cache_reset: true });
  expect(body.usage).toMatchObject({ prompt_tokens_details: { cached_tokens: 40 } });
});

test("a chunk whose values were clamped says how many, and one without says nothing of it, a replay as the first answer", async () => {
  const { chat, engine } = await stage();
  const said = async (observation_id: string) => {
    const body = (await (await chat(observation({ observation_id }))).json()) as Completion;
    return JSON.parse(body.choices[0]?.message.content ?? "") as { clamped?: number };
  };
  expect("clamped" in (await said("none"))).toBe(false);
  engine.script.run = async (observed) => ({ ...engine.chunk(observed), clamped: 3 });
  for (let time = 0; time < 2; time += 1) expect(await said("some")).toMatchObject({ clamped: 3 });
});

test("without images the reply is the model's description: no session, no step, usage of zeros", async () => {
  const { chat, engine, service } = await stage();
  const fields = { session_id: "s", robot_state: "wrong", action_horizon: "wrong", expected_step: 7 };
  for (const content of ["what are you?", [textPart()], [], ""]) {
    const response = await chat(withContent(content, { ...fields, model: STATEFUL }));
    const body = (await response.json()) as Completion;
    expect([response.status, response.headers.get("x-session-step"), body.usage]).toEqual([
      200,
      null,
      { prompt_tokens: 0, prompt_tokens_details: { cached_tokens: 0 }, completion_tokens: 0, total_tokens: 0 },
    ]);
    expect(response.headers.get("x-generation-id")).toBe(body.id);
    expect(body.choices[0]?.message.content).toContain("top, left, right");
  }
  expect([engine.observations.length, service.robot.sessions.size]).toEqual([0, 0]);
});

test("a description checks the rows up to invalid_session_id", async () => {
  const { chat } = await stage();
  const code = async (changes: object) => {
    const response = await chat(withContent("what are you?", { ...changes }));
    return ((await response.json()) as { error: { code: string } }).error.code;
  };
  expect([await code({ session_id: "" }), await code({ stream: 1 }), await code({ seed: "x" })]).toEqual([
    "invalid_session_id",
    "invalid_parameter",
    "invalid_parameter",
  ]);
});
