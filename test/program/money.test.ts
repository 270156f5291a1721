/** Money over HTTP, with real processes: who has money for 137 chunks gets 137, and whatever breaks, each is charged once. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { ENGINES, type EngineName } from "../store/engines.ts";
import { POSTGRES, PostgresServer } from "../store/postgres-server.ts";
import { Books, CHUNK, type Payer } from "./books.ts";
import { CutProxy } from "./cut-proxy.ts";
import { paidKillRounds, stopRounds, until } from "./outage.ts";
import { type Answer, post, smallFrames } from "./payers.ts";
import { requestOf, type Server } from "./program.ts";

let frames: Uint8Array[];
let postgresql: PostgresServer | undefined;

beforeAll(async () => {
  frames = await smallFrames();
  if (POSTGRES !== undefined) postgresql = await PostgresServer.start("fsync=off");
}, 60_000);

afterAll(async () => {
  await postgresql?.[Symbol.asyncDispose]();
});

function started(engine: EngineName): PostgresServer | undefined {
  return engine === "PostgreSQL" ? postgresql : undefined;
}

/** A thousand requests at once, from a process that has a connection for each. */
async function crowd(books: Books, server: Server, payer: Payer): Promise<readonly Answer[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "crowd-child.ts")], {
    env: { PATH: process.env.PATH ?? "", BUN_CONFIG_MAX_HTTP_REQUESTS: "2000" },
    stdin: "pipe",
    stdout: "pipe",
  });
  const bodies = Array.from({ length: 1_000 }, (_, seed) => requestOf(frames, { seed }));
  child.stdin.write(JSON.stringify({ target: books.target(server, payer), bodies }));
  await child.stdin.end();
  return JSON.parse(await new Response(child.stdout).text());
}

async function expect137(books: Books, payer: Payer, answers: readonly Answer[], refusal: object): Promise<void> {
  const given = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status !== 200);
  expect([given.length, refused.length]).toEqual([137, 863]);
  for (const answer of refused) expect(answer).toMatchObject({ ...refusal, shouldRetry: "false" });
  const ids = given.map(({ generationId }) => generationId);
  expect((await books.charges(payer)).map(({ id }) => id)).toEqual(ids.toSorted() as string[]);
  expect(await books.money(payer)).toMatchObject({ settled: 137n * CHUNK, held: 0n, monthSettled: 137n * CHUNK });
  await books.expectSound();
}

/** Enough for 137, and nearly for one more. */
const FOR_137 = 138n * CHUNK - 1n;

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("a thousand requests at once on money for 137 give 137 chunks and 863 refusals, and so does a monthly limit", async () => {
      await using books = await Books.open(started(name));
      const server = await books.serve({ TENDON_CHUNK_SECONDS: "60" });
      const short = await books.payer({ credit: FOR_137 });
      await expect137(books, short, await crowd(books, server, short), { status: 402, code: "insufficient_credit" });
      const limited = await books.payer({ spendLimit: FOR_137 });
      const refusal = { status: 429, code: "spend_limit_exceeded" };
      await expect137(books, limited, await crowd(books, server, limited), refusal);
      expect(await server.stop()).toBe(0);
    }, 120_000);

    test("kill -9 under load: what was answered is charged once, what was not at most once", async () => {
      const { rounds, answered, replayed } = await paidKillRounds(started(name), 3, frames, "small");
      expect([rounds, answered > 0, replayed]).toEqual([3, true, answered]);
    }, 60_000);

    test("bad images, failures of the model and clients that leave cost nothing, and nothing stays held", async () => {
      await using books = await Books.open(started(name), "cpu");
      const server = await books.serve({ TENDON_FAULTS: "model_failure:drill-" });
      const payer = await books.payer();
      const target = books.target(server, payer);
      const [top = new Uint8Array(), ...others] = frames;
      const bad = requestOf([top.subarray(0, top.length / 2), ...others]);
      const failing = Array.from({ length: 8 }, (_, index) => requestOf(frames, { session_id: `drill-${index}` }));
      const refused = await Promise.all([...Array(8).fill(bad), ...failing].map((body) => post(target, body)));
      expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(["invalid_image", "model_failure"]));
      await until("nothing is held", async () => (await books.money(payer)).held === 0n);
      expect((await books.money(payer)).settled).toBe(0n);

      // Enough to keep the one replica busy: the leavers wait behind them.
      const stay = Array.from({ length: 60 }, (_, seed) => post(target, requestOf(frames, { seed })));
      await until("the queue is full", async () => (await books.money(payer)).held > 40n * CHUNK);
      const left = new AbortController();
      const bodies = Array.from({ length: 8 }, (_, index) => requestOf(frames, { observation_id: `leaver-${index}` }));
      const leavers = bodies.map((body) => post(target, body, left.signal));
      await Bun.sleep(50);
      left.abort();
      const answers = [...(await Promise.all(stay)), ...(await Promise.all(leavers))].map(({ status }) => status);
      expect(answers).toEqual([...Array(60).fill(200), ...Array(8).fill(0)]);
      await until("nothing is held", async () => (await books.money(payer)).held === 0n);
      expect([(await books.charges(payer)).length, await books.kept(payer)]).toEqual([60, []]);
      expect((await books.money(payer)).settled).toBe(60n * CHUNK);
      await books.expectSound();
      expect(await server.stop()).toBe(0);
    }, 60_000);
  });
}

describe.skipIf(ENGINES.some(({ absent }) => absent))("PostgreSQL", () => {
  const server = (): PostgresServer => {
    if (postgresql === undefined) throw new Error("PostgreSQL did not start");
    return postgresql;
  };

  test("silent for 4 s under load: every request ends within 2 s, and each observation is charged once", async () => {
    const { answered, replayed, refused } = await stopRounds(server(), ["frozen"], 4_000, frames, "small");
    expect([answered > 0, replayed, refused > 0]).toEqual([true, answered, true]);
  }, 60_000);

  test("crashed and back under load: every request ends within 2 s, and each observation is charged once", async () => {
    const { answered, replayed, refused } = await stopRounds(server(), ["crashed"], 2_000, frames, "small");
    expect([answered > 0, replayed, refused > 0]).toEqual([true, answered, true]);
  }, 60_000);

  test("the answer to a commit is lost: the service asks again, the request is answered, and charged once", async () => {
    await using proxy = await CutProxy.before(server().port);
    await using books = await Books.open(server());
    const service = await books.serve({}, books.over(proxy));
    const payer = await books.payer();
    const target = books.target(service, payer);
    for (let step = 0; step < 3; step += 1) {
      const lost = proxy.lose("settleChunk", "kept");
      const body = requestOf(frames, { session_id: "s", observation_id: `o-${step}`, expected_step: step });
      const answer = await post(target, body);
      await lost;
      expect([answer.status, answer.step, answer.replayed]).toEqual([200, String(step), false]);
      expect(await post(target, body)).toEqual({ ...answer, replayed: true });
      expect((await books.money(payer)).settled).toBe(BigInt(step + 1) * CHUNK);
    }
    expect((await books.charges(payer)).length).toBe(3);
    expect((await books.money(payer)).held).toBe(0n);
    await books.expectSound();
    expect(await service.stop()).toBe(0);
  }, 30_000);

  test("the answer to a commit stays lost: 503, the session ends, and a repeat gives the stored answer, charged once", async () => {
    await using proxy = await CutProxy.before(server().port);
    await using books = await Books.open(server());
    const service = await books.serve({}, books.over(proxy));
    const payer = await books.payer();
    const target = books.target(service, payer);
    const body = (step: number) =>
      requestOf(frames, { session_id: "s", observation_id: `o-${step}`, expected_step: step });
    expect((await post(target, body(0))).status).toBe(200);
    const lost = proxy.lose("settleChunk", "kept", { stay: true });
    const answer = await post(target, body(1));
    await lost;
    expect(answer).toMatchObject({ status: 503, code: "observation_outcome_unknown", retryAfter: "1" });
    expect((await post(target, body(2))).status).toBe(503);
    proxy.mend();
    const alone = requestOf(frames, { observation_id: "alone" });
    await until("the service is back", async () => (await post(target, alone)).status === 200);
    expect(await post(target, body(2))).toMatchObject({ status: 410, code: "session_expired" });
    const again = await post(target, body(1));
    expect([again.status, again.replayed, again.step]).toEqual([200, true, "1"]);
    expect(await post(target, body(1))).toEqual(again);
    const runs = (await books.charges(payer)).map(({ id }) => id);
    expect([runs.length, runs.includes(again.generationId ?? "")]).toEqual([3, true]);
    await books.expireHolds();
    expect(await books.money(payer)).toMatchObject({ settled: 3n * CHUNK, held: 0n });
    await books.expectSound();
    expect(await service.stop()).toBe(0);
  }, 30_000);
});
