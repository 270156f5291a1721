/**
 * Every row of the specification's error table for the robot route, on a service with a session at step 1: status, code, `param`, the
 * shape of the body, nothing ran, and the session's step is where it was.
 */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/engine/fault.ts";
import { LIMITS } from "../../../src/limits.ts";
import { imagePart, imageUrl, jointState, jpeg, observation, STATEFUL, type Stage, stage, textPart } from "../stage.ts";
import { settle } from "./outcome.ts";

/** Sends the request that meets the row. */
type Provoke = (at: Stage) => Promise<Response>;

interface Row {
  readonly status: number;
  readonly code: string;
  readonly param?: string;
  readonly provoke: Provoke;
}

const live = { session_id: "s" };

function row(status: number, code: string, param: string | undefined, changes: object | string): Row {
  const body = typeof changes === "string" ? changes : observation({ ...live, ...changes });
  return { status, code, ...(param === undefined ? {} : { param }), provoke: (at) => at.chat(body) };
}

function content(...parts: unknown[]): object {
  return { messages: [{ role: "user", content: parts }] };
}

const images = [imagePart(), imagePart(), imagePart()];
const at = (index: number) => `messages[0].content[${index}].image_url.url`;

async function whileRunning(stand: Stage, second: object): Promise<Response> {
  const gate = Promise.withResolvers<void>();
  const { run } = stand.engine.script;
  stand.engine.script.run = async () => {
    await gate.promise;
    stand.engine.script.run = run;
    return new Fault("model_failed", "ends the first request without a step");
  };
  const first = stand.chat(observation({ ...live, observation_id: "running" }));
  await settle();
  const response = await stand.chat(observation({ ...live, ...second }));
  gate.resolve();
  await first;
  await settle();
  return response;
}

const ROWS: readonly Row[] = [
  row(400, "invalid_body", undefined, "[1]"),
  row(400, "model_missing", "model", { model: "" }),
  row(400, "model_not_found", "model", { model: "vendorZ/none:yam" }),
  row(400, "messages_missing", "messages", { messages: [] }),
  row(400, "no_user_message", "messages", { messages: [{ role: "system", content: "x" }] }),
  row(400, "invalid_content", "messages[0].content", { messages: [{ role: "user", content: 7 }] }),
  row(400, "invalid_content_part", "messages[0].content[0]", content({ type: "audio" })),
  row(400, "invalid_image_url", at(1), content(textPart(), imagePart("data:image/jpeg;base64,*"), ...images.slice(1))),
  row(
    400,
    "unsupported_image_format",
    at(1),
    content(textPart(), imagePart("data:image/png;base64,AAAA"), ...images.slice(1)),
  ),
  row(400, "instruction_missing", "messages[0].content", content(...images)),
  row(400, "instruction_too_long", "messages[0].content", content(textPart("fold ".repeat(2_000)), ...images)),
  row(400, "invalid_parameter", "stream", { stream: 1 }),
  row(400, "invalid_parameter", "handoff", { handoff: "no" }),
  row(400, "invalid_parameter", "deadline_ms", { deadline_ms: 0, handoff: true }),
  row(400, "handoff_unavailable", "handoff", { handoff: true }),
  row(400, "session_missing", "session_id", { model: STATEFUL, session_id: undefined }),
  row(400, "invalid_session_id", "session_id", { session_id: " s" }),
  row(400, "state_missing", "robot_state", { robot_state: null }),
  row(400, "state_shape_mismatch", "robot_state.joint_position", {
    robot_state: { ...jointState, joint_position: [1] },
  }),
  row(400, "action_horizon_invalid", "action_horizon", { action_horizon: 1.5 }),
  row(400, "action_horizon_out_of_range", "action_horizon", { action_horizon: 31 }),
  row(400, "num_inference_steps_invalid", "num_inference_steps", { num_inference_steps: "4" }),
  row(400, "num_inference_steps_out_of_range", "num_inference_steps", { num_inference_steps: 5 }),
  row(400, "image_count_mismatch", "messages", content(textPart(), ...images, imagePart())),
  row(400, "instruction_changed", undefined, content(textPart("another task"), ...images)),
  row(400, "invalid_image", "robot_state.gripper_position", {
    robot_state: { ...jointState, gripper_position: [0, 2] },
  }),
  row(400, "invalid_expected_step", "expected_step", { expected_step: -1 }),
  row(400, "invalid_observation_id", "observation_id", { observation_id: "a b" }),
  {
    status: 409,
    code: "idempotency_conflict",
    param: "observation_id",
    provoke: (stand) => stand.chat(observation({ ...live, observation_id: "used", seed: 9 })),
  },
  row(409, "session_step_conflict", "expected_step", { expected_step: 7 }),
  {
    status: 409,
    code: "observation_outcome_unknown",
    param: "observation_id",
    provoke: (stand) => whileRunning(stand, { observation_id: "running" }),
  },
  {
    status: 503,
    code: "observation_outcome_unknown",
    param: "observation_id",
    async provoke(stand) {
      stand.store.robot.observation = async () => ({
        digest: await digestOf(stand),
        generationId: "gen_1",
        step: 0,
        answer: undefined,
      });
      return await stand.chat(observation({ ...live, observation_id: "used" }));
    },
  },
  { status: 409, code: "session_busy", provoke: (stand) => whileRunning(stand, {}) },
  row(410, "session_expired", undefined, { session_id: "unknown", expected_step: 1 }),
  row(
    413,
    "image_too_large",
    at(1),
    content(textPart(), imagePart(imageUrl(jpeg(LIMITS.jpegBytesMax + 1))), ...images.slice(1)),
  ),
  row(413, "request_too_large", undefined, " ".repeat(LIMITS.robotBodyBytesMax + 1)),
  {
    status: 429,
    code: "no_replica_free",
    async provoke(stand) {
      for (let index = 0; index < stand.engine.slotsPerAccount; index += 1) {
        await stand.chat(observation({ model: STATEFUL, session_id: `full-${index}` }));
      }
      return await stand.chat(observation({ model: STATEFUL, session_id: "one-more" }));
    },
  },
  {
    status: 500,
    code: "model_failure",
    async provoke(stand) {
      const { run } = stand.engine.script;
      stand.engine.script.run = async () => new Fault("model_failed", "the model failed");
      const response = await stand.chat(observation(live));
      stand.engine.script.run = run;
      return response;
    },
  },
  {
    status: 503,
    code: "engine_unavailable",
    async provoke(stand) {
      stand.engine.script.observe = () => new Fault("busy", "the engine is gone");
      const response = await stand.chat(observation(live));
      stand.engine.script.observe = () => undefined;
      return response;
    },
  },
];

/** What the store was told when the observation "used" was answered. */
async function digestOf(stand: Stage): Promise<Uint8Array> {
  const kept = stand.store.kept.find(({ observation: one }) => one?.observationId === "used");
  return kept?.observation?.digest ?? new Uint8Array(32);
}

for (const { status, code, param, provoke } of ROWS) {
  test(`${status} ${code}${param === undefined ? "" : `, ${param}`}`, async () => {
    const stand = await stage();
    await stand.chat(observation({ ...live, observation_id: "used" }));
    const { engine, service } = stand;
    const response = await provoke(stand);
    const body = (await response.json()) as { error: Record<string, unknown> };
    const type = status === 429 ? "rate_limit_error" : status >= 500 ? "api_error" : "invalid_request_error";
    const told = { message: expect.any(String), type, code, ...(param === undefined ? {} : { param }) };
    expect([response.status, body]).toEqual([status, { error: told }]);
    // Only the first chunk was ever committed, and whatever was begun was given back.
    const others = engine.observations.filter(({ seed }) => seed !== 0).length;
    const filled = code === "no_replica_free" ? engine.slotsPerAccount : 0;
    expect([others, engine.commits, engine.framesHeld, engine.runsHeld]).toEqual([0, 1 + filled, 0, 0]);
    expect([service.http.ingress.bytes, service.robot.replays.size, stand.clock.armed]).toEqual([0, 0, 0]);
    expect([service.robot.admission.held, service.robot.admission.waiting]).toEqual([0, 0]);
    const next = await stand.chat(observation({ ...live, expected_step: 1 }));
    expect([next.status, next.headers.get("x-session-step")]).toEqual([200, "1"]);
  });
}

test("no row of the table is left out", () => {
  const spec = [
    ...["invalid_body", "model_missing", "model_not_found", "messages_missing", "no_user_message", "invalid_content"],
    ...[
      "invalid_content_part",
      "invalid_image_url",
      "unsupported_image_format",
      "instruction_missing",
      "invalid_parameter",
    ],
    ...["handoff_unavailable", "session_missing", "invalid_session_id", "state_missing", "state_shape_mismatch"],
    ...["action_horizon_invalid", "action_horizon_out_of_range", "num_inference_steps_invalid"],
    ...["num_inference_steps_out_of_range", "image_count_mismatch", "instruction_changed", "invalid_image"],
    ...["invalid_expected_step", "idempotency_conflict", "session_step_conflict", "observation_outcome_unknown"],
    ...["session_busy", "session_expired", "image_too_large", "request_too_large", "no_replica_free", "model_failure"],
    "engine_unavailable",
  ];
  const met = new Set(ROWS.map(({ code }) => code));
  expect(spec.filter((code) => !met.has(code))).toEqual([]);
});
