/** Contract section 1, "Wall clocks jump", on the real program: libfaketime moves its wall clock, at its start and while it serves. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ENGINES } from "../store/engines.ts";
import { PostgresServer } from "../store/postgres-server.ts";
import { Books, CHUNK, type Payer } from "./books.ts";
import { FakeWallClock, NO_FAKETIME } from "./fake-wall-clock.ts";
import { requestOf, type Server } from "./program.ts";
import { footage } from "./robot.ts";

let jpegs: readonly Uint8Array[] = [];
let postgresql: PostgresServer | undefined;

beforeAll(async () => {
  const { cameras } = await footage(1);
  jpegs = cameras.flat();
  if (ENGINES.some(({ name, absent }) => name === "PostgreSQL" && !absent))
    postgresql = await PostgresServer.start("fsync=off");
}, 60_000);
afterAll(() => postgresql?.[Symbol.asyncDispose]());

/** Days from the real time, each from the one before. */
const JUMPS = [3, -3, 40, -40] as const;

/** A robot's request: what came of it, in short. */
async function ask(server: Server, { key }: Payer, fields: Record<string, unknown>) {
  const response = await server.post(requestOf(jpegs, fields), { authorization: `Bearer ${key}` });
  const text = await response.text();
  const { error } = JSON.parse(text) as { error?: { code: string } };
  const replayed = response.headers.get("idempotent-replayed") === "true" ? "replayed" : "ran";
  return { text, said: error?.code ?? `${replayed} ${response.headers.get("x-session-step")}` };
}

for (const { name, absent } of ENGINES) {
  const on = () => (name === "PostgreSQL" ? postgresql : undefined);

  test.skipIf(absent || NO_FAKETIME)(
    `${name}: a start whose clock is days ahead or behind replays what was answered, charges it once, and keeps the ids of ended sessions`,
    async () => {
      await using books = await Books.open(on());
      const payer = await books.payer();
      await using folder = await FakeWallClock.place();
      const { clock } = folder;
      const first = await books.serve(clock.environment);
      const answered = { session_id: "s", observation_id: "o" };
      const { text, said } = await ask(first, payer, answered);
      expect(said).toBe("ran 0");
      expect(await first.stop()).toBe(0);
      for (const days of JUMPS) {
        await clock.jump(days);
        const server = await books.serve(clock.environment);
        expect([days, await ask(server, payer, answered)]).toEqual([days, { text, said: "replayed 0" }]);
        expect([days, (await ask(server, payer, { session_id: "s" })).said]).toEqual([days, "session_expired"]);
        expect([days, await books.money(payer)]).toMatchObject([days, { settled: CHUNK, held: 0n }]);
        expect(await server.stop()).toBe(0);
      }
      await books.expectSound();
    },
    120_000,
  );

  test.skipIf(absent || NO_FAKETIME)(
    `${name}: a clock that jumps by days while the service runs ends no session, runs nothing twice, and its month's limit follows it`,
    async () => {
      await using books = await Books.open(on());
      const [payer, limited] = [await books.payer(), await books.payer({ spendLimit: 2n * CHUNK })];
      await using folder = await FakeWallClock.place();
      const { clock } = folder;
      const server = await books.serve(clock.environment);
      for (const [step, days] of JUMPS.entries()) {
        const observation = { session_id: "s", observation_id: `o${step}`, expected_step: step };
        expect([days, (await ask(server, payer, observation)).said]).toEqual([days, `ran ${step}`]);
        await clock.jump(days);
        expect([days, (await ask(server, payer, observation)).said]).toEqual([days, `replayed ${step}`]);
      }
      expect(await books.money(payer)).toMatchObject({ settled: 4n * CHUNK, held: 0n });

      const months: [days: number, said: string[]][] = [
        [0, ["ran null", "ran null", "spend_limit_exceeded"]],
        [40, ["ran null", "ran null", "spend_limit_exceeded"]],
        [-40, ["ran null"]],
        [0, ["spend_limit_exceeded"]],
        [40, ["spend_limit_exceeded"]],
        [-40, ["ran null", "spend_limit_exceeded"]],
      ];
      for (const [days, expected] of months) {
        await clock.jump(days);
        const said: string[] = [];
        while (said.length < expected.length) said.push((await ask(server, limited, {})).said);
        expect([days, said]).toEqual([days, expected]);
      }
      expect(await books.money(limited)).toMatchObject({ settled: 6n * CHUNK, held: 0n });

      // What was written at any of these times is there after a start at another one.
      expect(await server.stop()).toBe(0);
      await clock.jump(3);
      const next = await books.serve(clock.environment);
      for (const step of JUMPS.keys()) {
        const observation = { session_id: "s", observation_id: `o${step}`, expected_step: step };
        expect((await ask(next, payer, observation)).said).toBe(`replayed ${step}`);
      }
      // A command beside it goes by the time of its store as well.
      const words = ["admin", "account", "link", "--account", payer.accountId, "--base-url", next.ready.url, "--json"];
      const { url } = JSON.parse((await books.run(words)).stdout) as { url: string };
      expect((await fetch(url)).status).toBe(200);
      expect(await next.stop()).toBe(0);
      await books.expectSound();
    },
    120_000,
  );
}
