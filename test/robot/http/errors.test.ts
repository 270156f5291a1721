/**
 * Every row of the specification's error table for the robot route, on a service with a session at step 1. Each has its status, code,
 * `param` and body; nothing runs, and the session goes on. Further tests: the order of the table's rows, and what every route has.
 */
import { expect, test } from "bun:test";
import { newKey } from "../../../src/account/key.ts";
import { LIMITS } from "../../../src/limits.ts";
import { ROBOT } from "../../../src/robot/errors.ts";
import {
  CARTESIAN,
  cartesianState,
  imagePart,
  imageUrl,
  jointState,
  jpeg,
  MODEL,
  observation,
  STATEFUL,
  type Stage,
  stage,
  textPart,
  VECTOR,
  vectorState,
} from "../stage.ts";
import { holdModel, settle } from "./outcome.ts";

const live = { session_id: "s" };
const images = [imagePart(), imagePart(), imagePart()];
const tooLarge = imageUrl(jpeg(LIMITS.jpegBytesMax + 1));
const prefixed = (base64: string) => `data:image/jpeg;base64,${base64}`;

/** Changes of a right observation. */
type Changes = Readonly<Record<string, unknown>>;
const content = (...parts: unknown[]): Changes => ({ messages: [{ role: "user", content: parts }] });
const only = (content: unknown): Changes => ({ messages: [{ role: "user", content }] });
const first = (url: unknown) => content(textPart(), imagePart(url), imagePart(), imagePart());
const joint = (changes: object): Changes => ({ robot_state: { ...jointState, ...changes } });
const cartesian = (changes: object): Changes => ({ model: CARTESIAN, robot_state: { ...cartesianState, ...changes } });
const vector = (state: unknown): Changes => ({ model: VECTOR, robot_state: { state } });
const turned = (...six: number[]) =>
  cartesian({ cartesian_position: [0, 0, 0, ...six, ...cartesianState.cartesian_position.slice(9)] });

/** A request that meets a row: changes of a right one, another body, or what must happen before. */
type Case = Changes | string | ((at: Stage) => Promise<Response>);

/** Cases by status, code and `param`, each with its reason. */
const CASES: Readonly<Record<string, Readonly<Record<string, Case>>>> = {
  "400 invalid_body": {
    "empty body": "",
    garbage: "{",
    "trailing comma": '{"a":1,}',
    array: "[]",
    null: "null",
    number: "1",
    string: '"x"',
    "depth 65": `{"a":${"[".repeat(64)}${"]".repeat(64)}}`,
    "20,001 values": `{"a":[${"1,".repeat(19_998)}1]}`,
  },
  "400 model_missing model": { missing: { model: undefined }, null: { model: null }, empty: { model: "" } },
  "400 model_not_found model": {
    unknown: { model: "vendorB/other" },
    "no text": { model: 5 },
    "from a prototype": { model: "constructor" },
  },
  "400 messages_missing messages": {
    missing: { messages: undefined },
    empty: { messages: [] },
    object: { messages: {} },
  },
  "400 no_user_message messages": { none: { messages: [{ role: "system", content: "x" }, null, "user"] } },
  "400 invalid_content messages[0].content": {
    missing: only(undefined),
    number: only(5),
    null: only(null),
    object: only({}),
  },
  "400 invalid_content_part messages[0].content[0]": { text: content("x"), type: content({ type: "audio" }) },
  "400 invalid_content_part messages[0].content[1]": { null: content(textPart(), null) },
  "400 invalid_content_part messages[0].content[0].text": { "no string": content({ type: "text", text: 5 }) },
  "400 invalid_image_url messages[0].content[0].image_url.url": {
    "image_url no object": content({ type: "image_url", image_url: "x" }),
  },
  "400 invalid_image_url messages[0].content[1].image_url.url": {
    number: first(5),
    missing: content(textPart(), { type: "image_url", image_url: {} }),
    "base64 letters": first(prefixed("/9j/*A==")),
    "without padding": first(prefixed("/9j/4A")),
    "with white space": first(prefixed("/9j/ 4A==")),
    "with stray bits": first(prefixed("/9j/4B==")),
    base64url: first(prefixed("_9j_4A==")),
  },
  "400 unsupported_image_format messages[0].content[1].image_url.url": {
    empty: first(""),
    "web address": first("https://example.org/a.jpg"),
    "png url": first("data:image/png;base64,iVBORw0KGgo="),
    "png bytes": first(prefixed("iVBORw0KGgo=")),
    "no bytes": first(prefixed("")),
  },
  "413 image_too_large messages[0].content[1].image_url.url": {
    "262,145 bytes": first(tooLarge),
    "not base64": first(prefixed("*".repeat(349_532))),
  },
  "400 instruction_missing messages[0].content": {
    "no text part": content(...images),
    blank: content(textPart(" \n\t"), ...images),
  },
  "400 instruction_too_long messages[0].content": { long: content(textPart("word ".repeat(2_000)), ...images) },
  "400 invalid_parameter stream": { text: { stream: "true" } },
  "400 invalid_parameter handoff": { number: { handoff: 1 } },
  "400 invalid_parameter seed": {
    negative: { seed: -1 },
    fraction: { seed: 1.5 },
    text: { seed: "1" },
    "2^53": { seed: 2 ** 53 },
  },
  "400 invalid_parameter deadline_ms": Object.fromEntries(
    [0, -1, 0.5, 240_001, "300", true, [300]].flatMap((deadline_ms) => [
      [JSON.stringify(deadline_ms), { deadline_ms, handoff: true }],
      [`${JSON.stringify(deadline_ms)} of a question`, { deadline_ms, ...only("what?") }],
    ]),
  ),
  "400 handoff_unavailable handoff": { true: { handoff: true } },
  "400 session_missing session_id": {
    missing: { model: STATEFUL, session_id: undefined },
    null: { model: STATEFUL, session_id: null },
  },
  "400 invalid_session_id session_id": Object.fromEntries(
    ["", " a", "a ", "a\nb", "a\u0000", "\u200b", "\ud800", "a".repeat(129), "\ue000", 5].map((session_id) => [
      JSON.stringify(session_id).slice(0, 20),
      { session_id },
    ]),
  ),
  "400 state_missing robot_state": { missing: { robot_state: undefined }, null: { robot_state: null } },
  "400 state_shape_mismatch robot_state": { array: { robot_state: [] }, text: { robot_state: "x" } },
  "400 state_shape_mismatch robot_state.joint_position": {
    missing: joint({ joint_position: undefined }),
    "11 joints": joint({ joint_position: Array(11).fill(0) }),
    "13 joints": joint({ joint_position: Array(13).fill(0) }),
    "infinite as float32": joint({ joint_position: Array(12).fill(1e39) }),
    "cartesian with joints": cartesian({ joint_position: [1] }),
    "joint state for a cartesian model": { model: CARTESIAN },
  },
  "400 state_shape_mismatch robot_state.gripper_position": {
    text: joint({ gripper_position: [0, "1"] }),
    null: joint({ gripper_position: [0, null] }),
    infinite: JSON.stringify(observation({ ...live, ...joint({ gripper_position: [0, 0.25] }) })).replace(
      "0.25",
      "1e999",
    ),
  },
  "400 state_shape_mismatch robot_state.cartesian_position": {
    "17 values": cartesian({ cartesian_position: Array(17).fill(0) }),
  },
  "400 state_shape_mismatch robot_state.state": {
    "6 of 7 values": vector(vectorState.state.slice(1)),
    "8 of 7 values": vector([...vectorState.state, 0]),
    "no array": vector("1,2,3,4,5,6,7"),
    "a text among them": vector([...vectorState.state.slice(1), "0"]),
    "infinite as float32": vector([...vectorState.state.slice(1), -1e39]),
    "a joint state": { model: VECTOR },
  },
  "400 action_horizon_invalid action_horizon": { text: { action_horizon: "5" }, fraction: { action_horizon: 1.5 } },
  "400 action_horizon_out_of_range action_horizon": {
    "0": { action_horizon: 0 },
    "31": { action_horizon: 31 },
    "above the model's rows": { model: STATEFUL, action_horizon: 25 },
    "above the rows of an operator's own": { ...vector(vectorState.state), action_horizon: 51 },
  },
  "400 num_inference_steps_invalid num_inference_steps": { text: { num_inference_steps: "2" } },
  "400 num_inference_steps_out_of_range num_inference_steps": {
    "0": { num_inference_steps: 0 },
    "5": { num_inference_steps: 5 },
  },
  "400 invalid_expected_step expected_step": {
    "-1": { expected_step: -1 },
    text: { expected_step: "0" },
    fraction: { expected_step: 0.5 },
  },
  "400 invalid_observation_id observation_id": {
    empty: { observation_id: "" },
    space: { observation_id: "a b" },
    "129 characters": { observation_id: "a".repeat(129) },
    number: { observation_id: 1 },
  },
  "409 idempotency_conflict observation_id": { "other content": { observation_id: "used", seed: 9 } },
  "409 observation_outcome_unknown observation_id": {
    "still running": (at) => whileRunning(at, { observation_id: "running" }),
  },
  "503 observation_outcome_unknown observation_id": {
    "result gone": async (at) => {
      const kept = at.store.kept.find(({ observation: one }) => one?.observationId === "used");
      const digest = kept?.observation?.digest ?? new Uint8Array(32);
      at.store.robot.observation = async () => ({ digest, generationId: "gen_1", step: 0, answer: undefined });
      return await at.chat(observation({ ...live, observation_id: "used" }));
    },
  },
  "410 session_expired": { "unknown session, step 1": { session_id: "unknown", expected_step: 1 } },
  "409 session_busy": { "a request runs": (at) => whileRunning(at, {}) },
  "400 instruction_changed": { "another task": content(textPart("another task"), ...images) },
  "409 session_step_conflict expected_step": {
    "step 7": { expected_step: 7 },
    "no session, step 1": { session_id: undefined, expected_step: 1 },
  },
  "400 image_count_mismatch messages": {
    two: content(textPart(), ...images.slice(1)),
    four: content(textPart(), imagePart(), ...images),
  },
  "400 invalid_image robot_state.gripper_position": {
    "above 1": joint({ gripper_position: [0, 1.01] }),
    "below 0": joint({ gripper_position: [-0.01, 1] }),
  },
  "400 invalid_image robot_state.cartesian_position": {
    "length 0": turned(1e-7, 0, 0, 0, 1, 0),
    parallel: turned(1, 0, 0, -2, 0.0001, 0),
  },
  "413 request_too_large": { "8 MiB and a byte": " ".repeat(LIMITS.robotBodyBytesMax + 1) },
  "429 no_replica_free": {
    "every slot has a session": async (at) => {
      for (let index = 0; index < at.engine.slotsPerAccount; index += 1) {
        await at.chat(observation({ model: STATEFUL, session_id: `full-${index}` }));
      }
      return await at.chat(observation({ model: STATEFUL, session_id: "one-more" }));
    },
  },
  "500 model_failure": {
    "a run that fails": async (at) => {
      at.engine.script.run = async () => at.engine.fault("a row is not finite");
      const response = await at.chat(observation(live));
      at.engine.mend();
      return response;
    },
  },
  "503 engine_unavailable": {
    "a model that is still loading": async (at) => {
      const { models } = at.service.robot.catalog;
      const served = models.get(MODEL);
      if (served) models.set(MODEL, { ...served, model: undefined });
      const response = await at.chat(observation(live));
      if (served) models.set(MODEL, served);
      return response;
    },
  },
};

/** Another request of the session while its first one runs, which ends without a step. */
async function whileRunning(at: Stage, second: object): Promise<Response> {
  const release = holdModel(at, async () => at.engine.fault("ends the first request without a step"));
  const running = at.chat(observation({ ...live, observation_id: "running" }));
  await settle();
  const response = await at.chat(observation({ ...live, ...second }));
  release();
  await running;
  await settle();
  return response;
}

function typeOf(status: string): string {
  if (status === "429") return "rate_limit_error";
  return status.startsWith("5") ? "api_error" : "invalid_request_error";
}

for (const [row, cases] of Object.entries(CASES)) {
  for (const [why, one] of Object.entries(cases)) {
    test(`${row}: ${why}`, async () => {
      const [status = "", code = "", param] = row.split(" ");
      const at = await stage();
      await at.chat(observation({ ...live, observation_id: "used" }));
      const { engine, service, clock } = at;
      const body = typeof one === "string" ? one : observation({ ...live, ...one });
      const response = typeof one === "function" ? await one(at) : await at.chat(body);
      const error = {
        message: expect.any(String),
        type: typeOf(status),
        code,
        ...(param === undefined ? {} : { param }),
      };
      expect([response.status, await response.json()]).toEqual([Number(status), { error }]);
      const { headers } = response;
      expect(headers.get("content-type")).toStartWith("application/json");
      expect(headers.get("x-request-id")).toMatch(/^req_[0-9A-Za-z]{24}$/);
      expect(headers.has("retry-after")).toBe(
        /^(no_replica_free|engine_unavailable|observation_outcome_unknown)$/.test(code) && why !== "result gone",
      );
      // Only the first chunk was ever committed, and whatever was begun was given back.
      const others = engine.observations.filter(({ seed }) => seed !== 0).length;
      const filled = code === "no_replica_free" ? engine.slotsPerAccount : 0;
      expect([others, engine.commits, engine.framesHeld, engine.runsHeld]).toEqual([0, 1 + filled, 0, 0]);
      expect([service.http.ingress.bytes, service.robot.replays.size, clock.armed]).toEqual([0, 0, 0]);
      expect([service.robot.admission.held, service.robot.admission.waiting]).toEqual([0, 0]);
      const next = await at.chat(observation({ ...live, expected_step: 1 }));
      expect([next.status, next.headers.get("x-session-step")]).toEqual([200, "1"]);
    });
  }
}

/** Each row beats all rows after it: faults are taken away one at a time, from the first row to the last. */
test("fields are checked in the order of the error table", async () => {
  const { chat } = await stage();
  const steps: [code: string, repair: Changes][] = [
    ["model_missing", { model: "x" }],
    ["model_not_found", { model: STATEFUL }],
    ["messages_missing", { messages: [{ role: "assistant" }] }],
    ["no_user_message", only(5)],
    ["invalid_content", content(imagePart(""), "x")],
    ["invalid_content_part", content(imagePart(""), imagePart(5))],
    ["invalid_image_url", content(imagePart(""))],
    ["unsupported_image_format", content(imagePart(tooLarge))],
    ["image_too_large", content(imagePart())],
    ["instruction_missing", content(textPart("x ".repeat(999)), imagePart())],
    ["instruction_too_long", content(textPart(), imagePart())],
    ["invalid_parameter", { stream: false }],
    ["handoff_unavailable", { handoff: false }],
    ["session_missing", { session_id: " " }],
    ["invalid_session_id", live],
    ["state_missing", { robot_state: {} }],
    ["state_shape_mismatch", joint({ gripper_position: [2, 2] })],
    ["action_horizon_invalid", { action_horizon: 99 }],
    ["action_horizon_out_of_range", { action_horizon: 1 }],
    ["num_inference_steps_invalid", { num_inference_steps: 99 }],
    ["num_inference_steps_out_of_range", { num_inference_steps: 1 }],
    ["invalid_expected_step", { expected_step: 1 }],
    ["invalid_observation_id", { observation_id: "o" }],
    ["session_expired", { expected_step: 0 }],
    ["image_count_mismatch", content(textPart(), ...images)],
    ["invalid_image", { robot_state: jointState }],
  ];
  const wrong = { action_horizon: "x", num_inference_steps: "x", expected_step: "x", observation_id: "" };
  const body: Record<string, unknown> = { stream: "x", handoff: true, ...wrong };
  const seen: string[] = [];
  for (const [, repair] of steps) {
    const answer = (await (await chat(body)).json()) as { error: { code: string } };
    seen.push(answer.error.code);
    Object.assign(body, repair);
  }
  expect(seen).toEqual(steps.map(([code]) => code));
  expect((await chat(body)).status).toBe(200);
});

test("among several images the order is: url, size, base64, format", async () => {
  const { chat } = await stage();
  const code = async (one: unknown, two: unknown) => {
    const parts = content(textPart(), imagePart(one), imagePart(two), imagePart());
    const answer = (await (await chat(observation(parts))).json()) as { error: { code: string; param: string } };
    return [answer.error.code, answer.error.param];
  };
  const second = "messages[0].content[2].image_url.url";
  const notBase64 = prefixed("*");
  expect([await code(tooLarge, 5), await code(notBase64, tooLarge), await code("", notBase64)]).toEqual([
    ["invalid_image_url", second],
    ["image_too_large", second],
    ["invalid_image_url", second],
  ]);
});

test("a missing key is 401 before the body is looked at; a wrong one too", async () => {
  const { send, engine } = await stage();
  const post = (headers: Record<string, string>) =>
    send("/v1/chat/completions", { method: "POST", headers, body: "{not json" });
  const none = await post({});
  const wrong = await post({ authorization: `Bearer ${newKey(0).key}` });
  expect([none.status, await none.json(), wrong.status, await wrong.json()]).toMatchObject([
    401,
    { error: { type: "authentication_error", code: "missing_api_key" } },
    401,
    { error: { type: "authentication_error", code: "invalid_api_key" } },
  ]);
  expect([none.headers.get("www-authenticate"), engine.framesPut]).toEqual(["Bearer", 0]);
});

test("404 not_found for an unknown route or a wrong method, key or no key", async () => {
  const { send, key } = await stage();
  const headers = { authorization: `Bearer ${key}` };
  const asks: [string, RequestInit][] = [
    ["/", {}],
    ["/v1", {}],
    ["/v1/nothing", { headers }],
    ["/v1/chat/completions", { method: "GET" }],
    ["/v1/chat/completions", { method: "DELETE", headers }],
    ["/v1/chat/completions/", { method: "POST" }],
    ["/healthz", { method: "POST" }],
    ["/metrics", {}],
  ];
  for (const [path, init] of asks) {
    const response = await send(path, init);
    const error = { type: "invalid_request_error", code: "not_found" };
    expect([path, response.status, await response.json()]).toMatchObject([path, 404, { error }]);
    expect(response.headers.get("x-request-id")).toStartWith("req_");
  }
});

test("no row of the table is left out", () => {
  const met = Object.keys(CASES).map((row) => row.split(" ")[1]);
  const rows = Object.values(ROBOT).filter(({ http }) => http !== undefined);
  expect([...new Set(rows.map(({ wire }) => wire))].filter((code) => !met.includes(code))).toEqual([]);
});
