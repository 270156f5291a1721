/** The process ends when no replica is left, in order and although a native thread hangs (contract section 2). */
import { beforeAll, expect, test } from "bun:test";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Place, requestOf } from "./program.ts";
import { footage } from "./robot.ts";

const SHIPPED = join(import.meta.dir, "../../dist/models/molmoact2-yam");

let jpegs: Uint8Array[];
beforeAll(async () => {
  const { cameras } = await footage(1);
  jpegs = cameras.flat();
}, 60_000);

/** A place with one model, so that one replica is the last one. */
async function withOneModel(): Promise<{ place: Place; args: string[] }> {
  const place = await Place.make();
  const models = place.path("models");
  await mkdir(models);
  await cp(SHIPPED, join(models, "molmoact2-yam"), { recursive: true });
  return { place, args: ["--models", models] };
}

for (const [drill, reason] of [
  ["replica_hangs", "an inference had not ended after"],
  ["device_fails", "its device failed: CUDA failure 700"],
] as const) {
  test(`${drill}: the last replica's run is answered with 503, and the process ends with 1 and says why`, async () => {
    const { place, args } = await withOneModel();
    await using _ = place;
    const server = await place.serve(args, { TENDON_FAULTS: `${drill}:ill`, TENDON_CHUNK_SECONDS: "1" });
    const errors = server.child.stderr.text();
    const answer = await server.post(requestOf(jpegs, { session_id: "ill" }));
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining("engine_unavailable")]);
    expect(await server.child.exited).toBe(1);
    const log = await errors;
    expect(log).toContain('"event":"replica out"');
    expect(log).toContain(reason);
    expect(log).toContain("no replica is left");
  });
}

test("native_panic: one request is answered with 500, the next one with a chunk, and /metrics counts it", async () => {
  const { place, args } = await withOneModel();
  await using _ = place;
  const server = await place.serve(args, { TENDON_FAULTS: "native_panic:ill" });
  const answer = await server.post(requestOf(jpegs, { session_id: "ill" }));
  expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining("model_failure")]);
  expect((await server.post(requestOf(jpegs, { session_id: "well" }))).status).toBe(200);
  expect([await server.metric("engine_panics_total"), await server.metric("engine_replicas_out")]).toEqual([1, 0]);
  expect(await server.stop()).toBe(0);
});
