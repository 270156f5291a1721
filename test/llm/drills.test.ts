/** The drills of `TENDON_FAULTS` at the language models: what the client sees, and what is charged. */
import { describe, expect, test } from "bun:test";
import { Drills, readDrills } from "../../src/drill.ts";
import { ask, expectLedger, MANNERS } from "./asking.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

const drills = (text: string): Drills => {
  const read = readDrills(text);
  if (!(read instanceof Drills)) throw new Error(read.message);
  return read;
};

describe("of the whole service", () => {
  test.each(["billing_unavailable", "metering_unavailable"])("%s strikes here too: nothing ran", async (name) => {
    await using stage = await LlmStage.start({ drills: drills(name) });
    for (const manner of MANNERS) {
      const told = await ask(stage, manner);
      expect([told.status, told.code]).toEqual([503, name]);
    }
    expect(stage.provider.exchanges).toBeEmpty();
    await expectLedger(stage, 0n);
  });

  test("auth_unavailable strikes here too", async () => {
    await using stage = await LlmStage.start({ drills: drills("auth_unavailable") });
    for (const model of [LIVE, JOB]) expect((await ask(stage, "live", { model })).code).toBe("auth_unavailable");
    expect((await stage.get("/v1/models")).status).toBe(503);
  });

  test("of robots strikes no response", async () => {
    await using stage = await LlmStage.start({ drills: drills("model_failure,slow_model,billing_unavailable:robot-") });
    expect((await ask(stage, "live", {}, { "idempotency-key": "robot-1" })).status).toBe(200);
  });
});
