/** One case or more for every row of the robot error table that a plain request can reach. */
import { expect, test } from "bun:test";
import { makeKey } from "../../../src/account/key.ts";
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
  stage,
  textPart,
  withContent,
} from "../stage.ts";

type Case = [why: string, body: unknown, status: number, code: string, param?: string];

const url = (index: number) => `messages[0].content[${index}].image_url.url`;
const first = (bad: unknown) => withContent([textPart(), imagePart(bad), imagePart(), imagePart()]);
const firstTwo = (one: unknown, two: unknown) => withContent([textPart(), imagePart(one), imagePart(two), imagePart()]);
const images = [imagePart(), imagePart(), imagePart()];
const tooLarge = imageUrl(jpeg(262_145));
const cartesian = (changes: object) =>
  observation({ model: CARTESIAN, robot_state: { ...cartesianState, ...changes } });
const rotation = (...six: number[]) => [0, 0, 0, ...six, ...cartesianState.cartesian_position.slice(9)];
const joint = (changes: object) => observation({ robot_state: { ...jointState, ...changes } });

const CASES: Case[] = [
  ["empty body", "", 400, "invalid_body"],
  ["garbage", "{", 400, "invalid_body"],
  ["trailing comma", '{"a":1,}', 400, "invalid_body"],
  ["array", "[]", 400, "invalid_body"],
  ["null", "null", 400, "invalid_body"],
  ["number", "1", 400, "invalid_body"],
  ["string", '"x"', 400, "invalid_body"],
  ["depth 65", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, 400, "invalid_body"],
  ["20,001 values", `{"a":[${"1,".repeat(19_998)}1]}`, 400, "invalid_body"],

  ["model missing", observation({ model: undefined }), 400, "model_missing", "model"],
  ["model null", observation({ model: null }), 400, "model_missing", "model"],
  ["model empty", observation({ model: "" }), 400, "model_missing", "model"],
  ["model unknown", observation({ model: "vendorB/other" }), 400, "model_not_found", "model"],
  ["model is no text", observation({ model: 5 }), 400, "model_not_found", "model"],
  ["model from a prototype", observation({ model: "constructor" }), 400, "model_not_found", "model"],

  ["messages missing", observation({ messages: undefined }), 400, "messages_missing", "messages"],
  ["messages empty", observation({ messages: [] }), 400, "messages_missing", "messages"],
  ["messages object", observation({ messages: {} }), 400, "messages_missing", "messages"],
  [
    "no user message",
    observation({ messages: [{ role: "system", content: "x" }, null, "user"] }),
    400,
    "no_user_message",
    "messages",
  ],
  ["content missing", withContent(undefined), 400, "invalid_content", "messages[0].content"],
  ["content number", withContent(5), 400, "invalid_content", "messages[0].content"],
  ["content null", withContent(null), 400, "invalid_content", "messages[0].content"],
  ["content object", withContent({}), 400, "invalid_content", "messages[0].content"],
  ["part text", withContent(["x"]), 400, "invalid_content_part", "messages[0].content[0]"],
  ["part null", withContent([textPart(), null]), 400, "invalid_content_part", "messages[0].content[1]"],
  ["part type", withContent([{ type: "audio" }]), 400, "invalid_content_part", "messages[0].content[0]"],
  [
    "part text no string",
    withContent([{ type: "text", text: 5 }]),
    400,
    "invalid_content_part",
    "messages[0].content[0].text",
  ],

  ["url number", first(5), 400, "invalid_image_url", url(1)],
  ["url missing", withContent([textPart(), { type: "image_url", image_url: {} }]), 400, "invalid_image_url", url(1)],
  ["image_url no object", withContent([{ type: "image_url", image_url: "x" }]), 400, "invalid_image_url", url(0)],
  ["base64 letters", first("data:image/jpeg;base64,/9j/*A=="), 400, "invalid_image_url", url(1)],
  ["base64 without padding", first("data:image/jpeg;base64,/9j/4A"), 400, "invalid_image_url", url(1)],
  ["base64 with white space", first("data:image/jpeg;base64,/9j/ 4A=="), 400, "invalid_image_url", url(1)],
  ["base64 with stray bits", first("data:image/jpeg;base64,/9j/4B=="), 400, "invalid_image_url", url(1)],
  ["base64url", first("data:image/jpeg;base64,_9j_4A=="), 400, "invalid_image_url", url(1)],
  ["url empty", first(""), 400, "unsupported_image_format", url(1)],
  ["web address", first("https://example.org/a.jpg"), 400, "unsupported_image_format", url(1)],
  ["png url", first("data:image/png;base64,iVBORw0KGgo="), 400, "unsupported_image_format", url(1)],
  ["png bytes", first("data:image/jpeg;base64,iVBORw0KGgo="), 400, "unsupported_image_format", url(1)],
  ["no bytes", first("data:image/jpeg;base64,"), 400, "unsupported_image_format", url(1)],
  ["262,145 bytes", first(tooLarge), 413, "image_too_large", url(1)],
  ["too large, not base64", first(`data:image/jpeg;base64,${"*".repeat(349_532)}`), 413, "image_too_large", url(1)],

  ["no text part", withContent(images), 400, "instruction_missing", "messages[0].content"],
  ["blank text", withContent([textPart(" \n\t"), ...images]), 400, "instruction_missing", "messages[0].content"],
  [
    "too long for the prompt",
    withContent([textPart("word ".repeat(2000)), ...images]),
    400,
    "instruction_too_long",
    "messages[0].content",
  ],

  ["stream text", observation({ stream: "true" }), 400, "invalid_parameter", "stream"],
  ["handoff number", observation({ handoff: 1 }), 400, "invalid_parameter", "handoff"],
  ["seed negative", observation({ seed: -1 }), 400, "invalid_parameter", "seed"],
  ["seed fraction", observation({ seed: 1.5 }), 400, "invalid_parameter", "seed"],
  ["seed text", observation({ seed: "1" }), 400, "invalid_parameter", "seed"],
  ["seed 2^53", observation({ seed: 2 ** 53 }), 400, "invalid_parameter", "seed"],
  ["handoff", observation({ handoff: true }), 400, "handoff_unavailable", "handoff"],

  ["session missing", observation({ model: STATEFUL }), 400, "session_missing", "session_id"],
  ["session null", observation({ model: STATEFUL, session_id: null }), 400, "session_missing", "session_id"],
  ...["", " a", "a ", "a\nb", "a\u0000", "\u200b", "\ud800", "a".repeat(129), "\ue000"].map(
    (id): Case => [
      `session_id ${JSON.stringify(id).slice(0, 20)}`,
      observation({ session_id: id }),
      400,
      "invalid_session_id",
      "session_id",
    ],
  ),
  ["session_id number", observation({ session_id: 5 }), 400, "invalid_session_id", "session_id"],

  ["state missing", observation({ robot_state: undefined }), 400, "state_missing", "robot_state"],
  ["state null", observation({ robot_state: null }), 400, "state_missing", "robot_state"],
  ["state array", observation({ robot_state: [] }), 400, "state_shape_mismatch", "robot_state"],
  ["state text", observation({ robot_state: "x" }), 400, "state_shape_mismatch", "robot_state"],
  ["joints missing", joint({ joint_position: undefined }), 400, "state_shape_mismatch", "robot_state.joint_position"],
  [
    "11 joints",
    joint({ joint_position: Array(11).fill(0) }),
    400,
    "state_shape_mismatch",
    "robot_state.joint_position",
  ],
  [
    "13 joints",
    joint({ joint_position: Array(13).fill(0) }),
    400,
    "state_shape_mismatch",
    "robot_state.joint_position",
  ],
  ["gripper text", joint({ gripper_position: [0, "1"] }), 400, "state_shape_mismatch", "robot_state.gripper_position"],
  ["gripper null", joint({ gripper_position: [0, null] }), 400, "state_shape_mismatch", "robot_state.gripper_position"],
  [
    "infinite",
    JSON.stringify(joint({ gripper_position: [0, 0.25] })).replace("0.25", "1e999"),
    400,
    "state_shape_mismatch",
    "robot_state.gripper_position",
  ],
  [
    "infinite as float32",
    joint({ joint_position: Array(12).fill(1e39) }),
    400,
    "state_shape_mismatch",
    "robot_state.joint_position",
  ],
  [
    "cartesian with joints",
    cartesian({ joint_position: [1] }),
    400,
    "state_shape_mismatch",
    "robot_state.joint_position",
  ],
  [
    "17 cartesian",
    cartesian({ cartesian_position: Array(17).fill(0) }),
    400,
    "state_shape_mismatch",
    "robot_state.cartesian_position",
  ],
  [
    "joint state for a cartesian model",
    observation({ model: CARTESIAN }),
    400,
    "state_shape_mismatch",
    "robot_state.joint_position",
  ],

  ["horizon text", observation({ action_horizon: "5" }), 400, "action_horizon_invalid", "action_horizon"],
  ["horizon fraction", observation({ action_horizon: 1.5 }), 400, "action_horizon_invalid", "action_horizon"],
  ["horizon 0", observation({ action_horizon: 0 }), 400, "action_horizon_out_of_range", "action_horizon"],
  ["horizon 31", observation({ action_horizon: 31 }), 400, "action_horizon_out_of_range", "action_horizon"],
  [
    "horizon above the model's rows",
    observation({ model: STATEFUL, session_id: "s", action_horizon: 25 }),
    400,
    "action_horizon_out_of_range",
    "action_horizon",
  ],
  ["steps text", observation({ num_inference_steps: "2" }), 400, "num_inference_steps_invalid", "num_inference_steps"],
  ["steps 0", observation({ num_inference_steps: 0 }), 400, "num_inference_steps_out_of_range", "num_inference_steps"],
  ["steps 5", observation({ num_inference_steps: 5 }), 400, "num_inference_steps_out_of_range", "num_inference_steps"],
  ["expected_step -1", observation({ expected_step: -1 }), 400, "invalid_expected_step", "expected_step"],
  ["expected_step text", observation({ expected_step: "0" }), 400, "invalid_expected_step", "expected_step"],
  ["expected_step fraction", observation({ expected_step: 0.5 }), 400, "invalid_expected_step", "expected_step"],
  ["observation_id empty", observation({ observation_id: "" }), 400, "invalid_observation_id", "observation_id"],
  ["observation_id space", observation({ observation_id: "a b" }), 400, "invalid_observation_id", "observation_id"],
  [
    "observation_id 129",
    observation({ observation_id: "a".repeat(129) }),
    400,
    "invalid_observation_id",
    "observation_id",
  ],
  ["observation_id number", observation({ observation_id: 1 }), 400, "invalid_observation_id", "observation_id"],

  ["unknown session, step 1", observation({ session_id: "s", expected_step: 1 }), 410, "session_expired"],
  ["no session, step 1", observation({ expected_step: 1 }), 409, "session_step_conflict", "expected_step"],
  ["two images", withContent([textPart(), imagePart(), imagePart()]), 400, "image_count_mismatch", "messages"],
  ["four images", withContent([textPart(), imagePart(), ...images]), 400, "image_count_mismatch", "messages"],
  ["gripper above 1", joint({ gripper_position: [0, 1.01] }), 400, "invalid_image", "robot_state.gripper_position"],
  ["gripper below 0", joint({ gripper_position: [-0.01, 1] }), 400, "invalid_image", "robot_state.gripper_position"],
  [
    "rotation of length 0",
    cartesian({ cartesian_position: rotation(1e-7, 0, 0, 0, 1, 0) }),
    400,
    "invalid_image",
    "robot_state.cartesian_position",
  ],
  [
    "rotation parallel",
    cartesian({ cartesian_position: rotation(1, 0, 0, -2, 0.0001, 0) }),
    400,
    "invalid_image",
    "robot_state.cartesian_position",
  ],
];

for (const [why, body, status, code, param] of CASES) {
  test(`${code}: ${why}`, async () => {
    const { chat, engine, service } = await stage();
    const response = await chat(body);
    const answer = (await response.json()) as { error: Record<string, unknown> };
    const { message, ...error } = answer.error;
    expect([response.status, answer, error]).toEqual([
      status,
      { error: answer.error },
      { type: "invalid_request_error", code, ...(param === undefined ? {} : { param }) },
    ]);
    expect(message).toBeString();
    expect(response.headers.get("content-type")).toStartWith("application/json");
    expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9A-Za-z]{24}$/);
    expect([
      engine.observations.length,
      engine.framesHeld,
      service.robot.sessions.size,
      service.http.ingress.bytes,
    ]).toEqual([0, 0, 0, 0]);
  });
}

/** Each row beats all rows after it: faults are taken away one at a time, from the first row to the last. */
test("fields are checked in the order of the error table", async () => {
  const { chat } = await stage();
  const steps: [code: string, repair: (body: Record<string, unknown>) => void][] = [
    ["model_missing", (body) => (body.model = "x")],
    ["model_not_found", (body) => (body.model = STATEFUL)],
    ["messages_missing", (body) => (body.messages = [{ role: "assistant" }])],
    ["no_user_message", (body) => (body.messages = [{ role: "user", content: 5 }])],
    ["invalid_content", (body) => (body.messages = [{ role: "user", content: [imagePart(""), "x"] }])],
    ["invalid_content_part", (body) => (body.messages = [{ role: "user", content: [imagePart(""), imagePart(5)] }])],
    ["invalid_image_url", (body) => (body.messages = [{ role: "user", content: [imagePart("")] }])],
    ["unsupported_image_format", (body) => (body.messages = [{ role: "user", content: [imagePart(tooLarge)] }])],
    ["image_too_large", (body) => (body.messages = [{ role: "user", content: [imagePart()] }])],
    [
      "instruction_missing",
      (body) => (body.messages = [{ role: "user", content: [textPart("x ".repeat(999)), imagePart()] }]),
    ],
    ["instruction_too_long", (body) => (body.messages = [{ role: "user", content: [textPart(), imagePart()] }])],
    ["invalid_parameter", (body) => (body.stream = false)],
    ["handoff_unavailable", (body) => (body.handoff = false)],
    ["session_missing", (body) => (body.session_id = " ")],
    ["invalid_session_id", (body) => (body.session_id = "s")],
    ["state_missing", (body) => (body.robot_state = {})],
    ["state_shape_mismatch", (body) => (body.robot_state = { ...jointState, gripper_position: [2, 2] })],
    ["action_horizon_invalid", (body) => (body.action_horizon = 99)],
    ["action_horizon_out_of_range", (body) => (body.action_horizon = 1)],
    ["num_inference_steps_invalid", (body) => (body.num_inference_steps = 99)],
    ["num_inference_steps_out_of_range", (body) => (body.num_inference_steps = 1)],
    ["invalid_expected_step", (body) => (body.expected_step = 1)],
    ["invalid_observation_id", (body) => (body.observation_id = "o")],
    ["session_expired", (body) => (body.expected_step = 0)],
    ["image_count_mismatch", (body) => (body.messages = [{ role: "user", content: [textPart(), ...images] }])],
    ["invalid_image", (body) => (body.robot_state = jointState)],
  ];
  const body: Record<string, unknown> = {
    stream: "x",
    handoff: true,
    action_horizon: "x",
    num_inference_steps: "x",
    expected_step: "x",
    observation_id: "",
  };
  const seen: string[] = [];
  for (const [, repair] of steps) {
    const answer = (await (await chat(body)).json()) as { error: { code: string } };
    seen.push(answer.error.code);
    repair(body);
  }
  expect(seen).toEqual(steps.map(([code]) => code));
  expect((await chat(body)).status).toBe(200);
});

test("among several images the order is: url, size, base64, format", async () => {
  const { chat } = await stage();
  const code = async (one: unknown, two: unknown) => {
    const answer = (await (await chat(firstTwo(one, two))).json()) as { error: { code: string; param: string } };
    return [answer.error.code, answer.error.param];
  };
  const notBase64 = "data:image/jpeg;base64,*";
  expect([await code(tooLarge, 5), await code(notBase64, tooLarge), await code("", notBase64)]).toEqual([
    ["invalid_image_url", url(2)],
    ["image_too_large", url(2)],
    ["invalid_image_url", url(2)],
  ]);
});

test("a missing key is 401 before the body is looked at; a wrong one too", async () => {
  const { send, engine } = await stage();
  const post = (headers: Record<string, string>) =>
    send("/v1/chat/completions", { method: "POST", headers, body: "{not json" });
  const none = await post({});
  const wrong = await post({ authorization: `Bearer ${makeKey()}` });
  expect([none.status, await none.json(), wrong.status, await wrong.json()]).toMatchObject([
    401,
    { error: { type: "authentication_error", code: "missing_api_key" } },
    401,
    { error: { type: "authentication_error", code: "invalid_api_key" } },
  ]);
  expect([none.headers.get("www-authenticate"), engine.framesPut]).toEqual(["Bearer", 0]);
});

test("key verification down: 503 auth_unavailable", async () => {
  const { chat, store } = await stage();
  store.down = true;
  const response = await chat(observation());
  expect([response.status, await response.json()]).toMatchObject([
    503,
    { error: { type: "api_error", code: "auth_unavailable" } },
  ]);
});

test("404 not_found for an unknown route or a wrong method, key or no key", async () => {
  const { send, key } = await stage();
  const asks: [string, RequestInit][] = [
    ["/", {}],
    ["/v1", {}],
    ["/v1/nothing", { headers: { authorization: `Bearer ${key}` } }],
    ["/v1/chat/completions", { method: "GET" }],
    ["/v1/chat/completions", { method: "DELETE", headers: { authorization: `Bearer ${key}` } }],
    ["/v1/chat/completions/", { method: "POST" }],
    ["/healthz", { method: "POST" }],
    ["/metrics", {}],
  ];
  for (const [path, init] of asks) {
    const response = await send(path, init);
    expect([path, response.status, await response.json()]).toMatchObject([
      path,
      404,
      { error: { type: "invalid_request_error", code: "not_found" } },
    ]);
    expect(response.headers.get("x-request-id")).toStartWith("req_");
  }
});

test("a served model that is still loading: 503 engine_unavailable with Retry-After", async () => {
  const { chat, service, engine } = await stage();
  const served = service.robot.catalog.models.get(MODEL);
  if (served) service.robot.catalog.models.set(MODEL, { ...served, model: undefined });
  const response = await chat(observation());
  expect([response.status, response.headers.get("retry-after"), await response.json()]).toMatchObject([
    503,
    "1",
    { error: { code: "engine_unavailable" } },
  ]);
  expect(engine.framesPut).toBe(0);
});
