/**
 * The specification's table of WebSocket errors, row by row: code, `closing`, close code, `observation_id`. Those of observations,
 * and what becomes of what is around a fault, are in `queued.test.ts`.
 */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { failure, settle } from "../http/outcome.ts";
import { observation } from "../stage.ts";
import { held, NOTHING, peer } from "./peer.ts";

/** Before a session: the error, nothing closes, and a right message goes on working. */
describe("messages that are none, with closing: false", () => {
  const cases: [code: string, message: string | object][] = [
    ["invalid_json", "{"],
    ["invalid_json", ""],
    ["invalid_body", "[1]"],
    ["invalid_body", '"text"'],
    ["invalid_body", `{"a":${"[".repeat(100)}${"]".repeat(100)}}`],
    ["type_missing", {}],
    ["type_missing", { type: null }],
    ["unknown_type", { type: "session.end" }],
    ["unknown_type", { type: 7 }],
  ];
  for (const [code, message] of cases) {
    test(`${code}: ${JSON.stringify(message).slice(0, 40)}`, async () => {
      const one = await peer();
      await one.say(message);
      expect(one.last).toEqual({ type: "error", code, message: expect.any(String), closing: false });
      await one.open();
      expect([(await one.act()).type, one.closed]).toEqual(["action_chunk", undefined]);
    });
  }
});

describe("session.open that cannot be", () => {
  const stays: [code: string, fields: object][] = [
    ["instruction_missing", { instruction: undefined }],
    ["instruction_missing", { instruction: " \n" }],
    ["instruction_missing", { instruction: 5 }],
    ["handoff_unavailable", { handoff: true }],
    ["invalid_parameter", { handoff: "yes" }],
    ["invalid_parameter", { seed: -1 }],
    ["invalid_parameter", { seed: 0.5 }],
    ["invalid_parameter", { actions_format: "f64" }],
    ["invalid_session_id", { session_id: " s" }],
    ["invalid_session_id", { session_id: 5 }],
    ["action_horizon_invalid", { action_horizon: "3" }],
    ["action_horizon_out_of_range", { action_horizon: 31 }],
    ["num_inference_steps_invalid", { num_inference_steps: 1.5 }],
    ["num_inference_steps_out_of_range", { num_inference_steps: 5 }],
    ["instruction_too_long", { instruction: "a ".repeat(1_000) }],
  ];
  for (const [code, fields] of stays) {
    test(`${code} for ${JSON.stringify(fields).slice(0, 60)}: closing false, no observation_id; what came with it has no session, and another open may follow`, async () => {
      const one = await peer();
      one.sayOpen(fields);
      one.sayObserve({ observation_id: "o" });
      await settle();
      const missing = { type: "error", code: "session_missing", message: expect.any(String), closing: false };
      expect(one.heard).toEqual([
        { type: "error", code, message: expect.any(String), closing: false },
        ...[missing, missing, missing, { ...missing, observation_id: "o" }],
      ]);
      expect([(await one.open()).type, (await one.act()).type]).toEqual(["session.opened", "action_chunk"]);
    });
  }

  const closes: [code: string, fields: object][] = [
    ["model_missing", { model: undefined }],
    ["model_missing", { model: "" }],
    ["model_not_found", { model: "none" }],
    ["model_not_found", { model: 5 }],
  ];
  for (const [code, fields] of closes) {
    test(`${code} for ${JSON.stringify(fields)}: closing, 1008`, async () => {
      const one = await peer();
      one.sayOpen(fields);
      one.sayObserve({ observation_id: "o" });
      await settle();
      expect(one.heard).toEqual([{ type: "error", code, message: expect.any(String), closing: true }]);
      expect([one.closed, one.ended, held(one.at)]).toEqual([1008, true, NOTHING]);
    });
  }

  test("a message names the field at fault, once", async () => {
    const one = await peer();
    await one.open();
    const said = async (fields: object) => (await one.act(fields)).message as string;
    const messages = [
      await said({ robot_state: { joint_position: [1], gripper_position: [0, 0] } }),
      await said({ seed: 1, expected_step: -1 }),
    ];
    expect(messages.map((message) => message.match(/robot_state\.joint_position|expected_step/g)?.length)).toEqual([
      1, 1,
    ]);
  });

  test("engine_protocol_error says what the table does: connect again and repeat the observation", async () => {
    const one = await peer();
    await one.open();
    const { engine } = one.at;
    engine.script.run = async (run) => ({ ...engine.chunk(run), rows: 29 });
    expect((await one.act()).message).toEndWith("connect again and repeat the observation");
  });

  test("session_busy: over HTTP 409 while a socket holds the session, 410 after session.close", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    await one.act();
    const send = async () => await failure(await one.at.chat(observation({ session_id: "s" })));
    expect(await send()).toMatchObject({ status: 409, code: "session_busy" });
    await one.say({ type: "session.close" });
    expect(await send()).toMatchObject({ status: 410, code: "session_expired" });
  });

  test("session_expired, 1008: after 60 s without an observation", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    await one.act();
    one.at.clock.advance(LIMITS.sessionIdleMs);
    one.at.service.robot.sessions.sweep();
    expect([one.last, one.closed]).toEqual([
      { type: "error", code: "session_expired", message: expect.any(String), closing: true },
      1008,
    ]);
  });
});

test("session.close without a session: session.closed, then 1000, also behind a session.open that was refused", async () => {
  const goodbye = { type: "session.closed", reason: "session_close" };
  const none = await peer();
  await none.say({ type: "session.close" });
  expect([none.heard, none.closed, none.ended]).toEqual([[goodbye], 1000, true]);
  const refused = await peer();
  refused.sayOpen({ instruction: "" });
  await refused.say({ type: "session.close" });
  expect(refused.heard).toMatchObject([{ code: "instruction_missing", closing: false }, goodbye]);
  expect([refused.closed, held(refused.at)]).toEqual([1000, NOTHING]);
});
