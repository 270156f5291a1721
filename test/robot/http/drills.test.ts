/** Drills: each named failure of the robot route, as a client author meets it (contract section 9). */
import { expect, test } from "bun:test";
import { readDrills } from "../../../src/drill.ts";
import { Problem } from "../../../src/std/problem.ts";
import { observation, STATEFUL, type Stage, stage } from "../stage.ts";
import { failure, settle } from "./outcome.ts";

async function drilled(faults: string): Promise<Stage> {
  const drills = readDrills(faults);
  if (drills instanceof Problem) throw new Error(drills.message);
  const at = await stage({ drills });
  // The native engine does the same: the inference fails before this step.
  const { run } = at.engine.script;
  at.engine.script.run = async (observed) =>
    observed.failStep === undefined ? run(observed) : at.engine.fault(`before flow step ${observed.failStep}`);
  return at;
}

const on = (session_id: string | undefined, changes: object = {}) => observation({ session_id, ...changes });

for (const name of ["engine_unavailable", "auth_unavailable", "billing_unavailable", "metering_unavailable"]) {
  test(`${name}: 503 with Retry-After; nothing runs`, async () => {
    const at = await drilled(name);
    const response = await at.chat(on("s"));
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await failure(response)).toMatchObject({ status: 503, code: name });
    expect([at.engine.observations.length, at.engine.framesHeld, at.service.robot.sessions.size]).toEqual([0, 0, 0]);
  });
}

test("a request without any key is 401 missing_api_key always, also under the drill auth_unavailable, on routes and handshakes", async () => {
  const at = await drilled("auth_unavailable");
  const upgrade = { upgrade: "websocket", connection: "upgrade" };
  for (const headers of [{}, { authorization: "Basic x" }, upgrade])
    for (const path of ["/v1/models", "/v1/responses"])
      expect(await failure(await at.send(path, { headers }))).toMatchObject({ status: 401, code: "missing_api_key" });
});

test("NAME:PREFIX@STEP strikes once, at that step of each such session; the repeat goes through", async () => {
  const at = await drilled("model_failure:drill@1");
  const codes: unknown[] = [];
  for (const id of ["drill-1", "drill-2", "other"]) {
    for (let i = 0; i < 3; i += 1) {
      const response = await at.chat(on(id));
      codes.push(response.ok ? response.headers.get("x-session-step") : (await failure(response)).code);
    }
  }
  const struck = ["0", "model_failure", "1"];
  expect(codes).toEqual([...struck, ...struck, "0", "1", "2"]);
});

test("after_start fails at the last flow step, once the stream has begun, with model_failure", async () => {
  const at = await drilled("after_start:s");
  const response = await at.chat(on("s", { stream: true }));
  const text = await response.text();
  expect([response.status, text.startsWith(": processing\n\n"), text.endsWith("data: [DONE]\n\n")]).toEqual([
    200,
    true,
    true,
  ]);
  expect(text).toContain('"code":"model_failure"');
  const { steps } = at.service.robot.catalog.models.get(observation().model as string)?.manifest.flow ?? { steps: 0 };
  expect(at.engine.observations[0]?.failStep).toBe(steps - 1);
});

test("slow_model adds 2 s", async () => {
  const at = await drilled("slow_model");
  let status = 0;
  const pending = at.chat(on("s")).then((response) => {
    status = response.status;
  });
  await settle();
  at.clock.advance(1_999);
  await settle();
  expect(status).toBe(0);
  at.clock.advance(1);
  await pending;
  expect(status).toBe(200);
});

test("without a prefix a drill strikes requests without session too, and models with memory", async () => {
  const at = await drilled("model_failure");
  expect([
    (await at.chat(on(undefined))).status,
    (await at.chat(on("s", { model: STATEFUL }))).status,
    at.service.robot.sessions.size,
    at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount,
  ]).toEqual([500, 500, 0, 4]);
});
