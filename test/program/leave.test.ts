/** Clients that hang up, on real sockets (contract section 2). */
import { beforeAll, expect, test } from "bun:test";
import { Place, requestOf, type Server } from "./program.ts";
import { footage } from "./robot.ts";

let jpegs: Uint8Array[];
beforeAll(async () => {
  const { cameras } = await footage(1);
  jpegs = cameras.flat();
}, 60_000);

/** Posts, and hangs up when `when` resolves. */
async function hangUp(server: Server, body: string, when: () => Promise<void>): Promise<void> {
  const client = new AbortController();
  const headers = { authorization: `Bearer ${server.ready.api_key}` };
  const url = `${server.ready.url}/v1/chat/completions`;
  const request = fetch(url, { method: "POST", headers, body, signal: client.signal }).then(
    (response) => response.text(),
    () => "gone",
  );
  await when();
  client.abort();
  await request.catch(() => "gone");
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(5);
}

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "plain";

  test(`after the model's start the chunk is finished, committed and kept under its observation_id, ${how}`, async () => {
    await using place = await Place.make();
    const server = await place.serve([], { TENDON_FAULTS: "slow_model:slow@0" });
    const body = requestOf(jpegs, { session_id: "slow", observation_id: "o", stream });
    // The model has run by then, and the drill holds its chunk back.
    await hangUp(server, body, () => until(async () => (await server.metric("engine_chunks_run_total")) === 1));
    const pending = await server.post(body);
    expect([pending.status, await pending.text()]).toEqual([
      409,
      expect.stringContaining("observation_outcome_unknown"),
    ]);
    let again = await server.post(body);
    while (again.status === 409) {
      await again.body?.cancel();
      await Bun.sleep(50);
      again = await server.post(body);
    }
    expect([again.status, again.headers.get("idempotent-replayed"), again.headers.get("x-session-step")]).toEqual([
      200,
      "true",
      "0",
    ]);
    expect([(await again.text()).includes("actions"), await server.metric("engine_chunks_run_total")]).toEqual([
      true,
      1,
    ]);
    expect(await server.stop()).toBe(0);
  }, 30_000);

  test(`before the model's start it cancels: the model never sees the run, the step does not move, ${how}`, async () => {
    await using place = await Place.make();
    const server = await place.serve();
    // Enough to keep the one replica busy for a second: what comes behind them waits in the queue.
    const others = Array.from({ length: 60 }, (_, seed) => server.post(requestOf(jpegs, { seed })));
    await until(async () => (await server.metric("engine_chunks_free")) < 128);
    const body = requestOf(jpegs, { session_id: "s", observation_id: "o", stream });
    await hangUp(server, body, () => Bun.sleep(150));
    for (const response of await Promise.all(others)) expect(response.status).toBe(200);
    expect(await server.metric("engine_chunks_run_total")).toBe(60);
    const again = await server.post(body);
    expect([again.status, again.headers.get("idempotent-replayed"), again.headers.get("x-session-step")]).toEqual([
      200,
      null,
      "0",
    ]);
    await again.text();
    expect(await server.stop()).toBe(0);
  }, 30_000);
}
