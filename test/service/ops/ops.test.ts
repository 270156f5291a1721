/** Liveness and readiness; readiness makes a durable write, bounded by time and rate. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { settle } from "../../robot/http/outcome.ts";
import { MODEL, type Stage, stage } from "../../robot/stage.ts";

async function ready(at: Stage): Promise<{ status: number; missing?: string[] }> {
  const response = await at.send("/readyz");
  return { ...((await response.json()) as object), status: response.status };
}

/** Counts the writes, and answers them with what `outcome` says. */
function counted(at: Stage, outcome: () => Promise<"kept" | StoreDown>): () => number {
  let writes = 0;
  at.store.base.probe = () => {
    writes += 1;
    return outcome();
  };
  return () => writes;
}

test("readyz is 503 and says so when the store answers but refuses a durable write", async () => {
  const at = await stage();
  expect((await ready(at)).status).toBe(200);
  counted(at, async () => new StoreDown("database or disk is full"));
  at.clock.advance(LIMITS.storeProbeMs);
  expect(await ready(at)).toMatchObject({
    status: 503,
    missing: ["the store takes no durable writes; is its disk full?"],
  });
  expect(at.logLines.join()).toContain("database or disk is full");
});

test("a hundred probes in a second make one write, and the next second makes the next one", async () => {
  const at = await stage();
  const writes = counted(at, async () => "kept");
  await Promise.all(Array.from({ length: 100 }, () => ready(at)));
  expect(writes()).toBe(1);
  at.clock.advance(LIMITS.storeProbeMs);
  await ready(at);
  expect(writes()).toBe(2);
});

test("a write that hangs answers 503 within a second, and no other one is sent behind it", async () => {
  const at = await stage();
  const writes = counted(at, () => new Promise(() => {}));
  for (let round = 0; round < 3; round += 1) {
    const pending = ready(at);
    await settle();
    at.clock.advance(LIMITS.storePingMs);
    expect((await pending).status).toBe(503);
  }
  expect(writes()).toBe(1);
  expect(at.clock.armed).toBe(0);
});

test("readyz says what is missing; healthz answers always", async () => {
  const at = await stage();
  expect(await ready(at)).toMatchObject({ status: 200 });
  const { models } = at.service.robot.catalog;
  const served = models.get(MODEL);
  if (served) models.set(MODEL, { ...served, model: undefined });
  at.store.down = true;
  const missing = [`model ${MODEL} is loading`, "the store does not answer"];
  expect(await ready(at)).toMatchObject({ status: 503, missing });
  expect(at.logLines.join()).toContain("switched off by the test");
  await at.service.core.lifecycle.drain();
  const response = await at.send("/readyz");
  expect([response.headers.get("retry-after"), await response.json()]).toMatchObject([
    "1",
    { error: { code: "engine_unavailable" }, missing: ["the service is shutting down", ...missing] },
  ]);
  expect((await at.send("/healthz")).status).toBe(200);
});

test("readyz answers within a second although the store says nothing", async () => {
  const at = await stage();
  at.store.ping = () => new Promise(() => {});
  const pending = ready(at);
  await settle();
  at.clock.advance(LIMITS.storePingMs);
  expect(await pending).toMatchObject({ status: 503, missing: ["the store does not answer"] });
  expect(at.logLines.join()).toContain("within 1000 ms");
  expect(at.clock.armed).toBe(0);
});
