/**
 * A database of schema 4, the last one before charges, is upgraded with everything in it.
 *
 * `fixtures/schema-4.json` holds all rows of a real service of that version (commit 1dd063a): `serve --dev` with the drills
 * `result_lost:lost@0,slow_model:slow`, a sign-in, `admin` commands that made a second account with credit, a limit and keys, then
 * observations over HTTP (with session and observation_id, with one of them, with neither, one whose answer was lost) and over
 * sockets (json and f32), a device login, and SIGKILL while a slow run was held. Its secrets belong to nothing else. A blob is
 * written as base64 in `bytes`; `reply` texts are as they were.
 */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import postgres from "postgres";
import { BASE } from "../../src/store/base/schema.ts";
import { partsFor } from "../../src/store/migration.ts";
import { schemaForPostgres } from "../../src/store/postgres/migrate.ts";
import { forSqlite } from "../../src/store/sqlite/statements.ts";
import { ENGINES, type EngineName, type Place, place, startServer, stopServer } from "./engines.ts";
import fixture from "./fixtures/schema-4.json";
import { expectSound, newCharge, settled } from "./rows.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

type Row = Readonly<Record<string, unknown>>;
const ROWS: Readonly<Record<string, readonly Row[]>> = fixture;
const { runs, observations, usage_days: usageDays, accounts } = fixture;

/** What is run on the old database, and what closes it. */
interface Old extends AsyncDisposable {
  run(text: string, values?: readonly SQLQueryBindings[]): Promise<unknown>;
}

function oldDatabase(engine: EngineName, at: Place): Old {
  if (engine === "SQLite") {
    const db = new Database(join(at.dir, "tendon.sqlite"), { create: true, strict: true });
    return {
      run: async (text, values = []) => db.run(forSqlite(text), [...values]),
      [Symbol.asyncDispose]: async () => db.close(),
    };
  }
  const client = postgres(at.environment.DATABASE_URL ?? "", { max: 1, onnotice: () => {} });
  return {
    run: (text, values = []) => client.unsafe(text, [...values] as string[]),
    [Symbol.asyncDispose]: () => client.end(),
  };
}

/** As a service of that version left it. */
async function fill(engine: EngineName, at: Place): Promise<void> {
  await using old = oldDatabase(engine, at);
  const name = engine === "SQLite" ? "sqlite" : "postgres";
  const translate = engine === "SQLite" ? String : schemaForPostgres;
  const released = BASE.slice(0, 4);
  for (const part of released.flatMap((migration) => partsFor(migration, name, translate))) await old.run(String(part));
  if (engine === "SQLite") {
    await old.run("PRAGMA user_version = 4");
  } else {
    await old.run("CREATE TABLE tendon_schema (version BIGINT NOT NULL)");
    await old.run("INSERT INTO tendon_schema (version) VALUES (4)");
    await old.run("CREATE FUNCTION tendon_hold(o jsonb) RETURNS text LANGUAGE sql AS 'SELECT id FROM runs'");
  }
  await old.run("DELETE FROM revisions");
  const { accounts: first, ...rest } = ROWS;
  for (const [table, rows] of Object.entries({ accounts: first ?? [], ...rest })) {
    for (const row of rows) {
      const columns = Object.keys(row);
      const places = columns.map((_, index) => `$${index + 1}`);
      const text = `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${places.join(", ")})`;
      await old.run(text, Object.values(row).map(bound));
    }
  }
}

function bound(value: unknown): SQLQueryBindings {
  if (typeof value === "object" && value !== null && "bytes" in value)
    return Buffer.from(String(value.bytes), "base64");
  return value as SQLQueryBindings;
}

/** Integers as the store's rows have them. */
function big(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === "number" ? BigInt(value) : value]),
  );
}

type Observation = (typeof observations)[number];

const keyOf = (row: Observation) => ({
  accountId: row.account_id,
  model: row.model,
  sessionId: row.session_id,
  observationId: row.observation_id,
});

/** The head and the rows' numbers that an old reply stands for, read without the program. */
function meant({ reply, model, at }: Observation) {
  const [text = "", base64] = (reply ?? "").split("\n");
  const outer = JSON.parse(text);
  const chunk = outer.choices === undefined ? outer : JSON.parse(outer.choices[0].message.content);
  const { prompt_tokens, prompt_tokens_details, completion_tokens } = outer.usage;
  const { session_id, step, dt, action_dim, action_space, next_frames_per_camera, timing_ms, cache_reset } = chunk;
  const head = {
    id: outer.id,
    created: outer.created ?? at,
    model,
    session_id,
    step,
    dt,
    action_dim,
    action_space,
    next_frames_per_camera,
    timing_ms,
    ...(cache_reset ? { cache_reset } : {}),
    usage: { prompt_tokens, cached_tokens: prompt_tokens_details.cached_tokens, completion_tokens },
  };
  const bytes = Buffer.from(base64 ?? "", "base64");
  const values: number[] = chunk.actions?.flat() ?? [];
  for (let at = 0; at < bytes.length; at += 4) values.push(bytes.readFloatLE(at));
  return { head: JSON.stringify(head), values };
}

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("the rows of schema 4 are kept: money, usage, people, sessions", async () => {
      await using at = await place(name);
      await fill(name, at);
      const store = await at.open();
      await expectSound(store);
      // Its time goes on from the last moment that is in it, not from the day of the upgrade, by whatever clock.
      const latest = Math.max(...[...runs.map((row) => row.submitted_at), ...accounts.map((row) => row.created_at)]);
      expect(await at.rows("SELECT seconds FROM seen_time")).toEqual([{ seconds: BigInt(latest) }]);
      expect(await store.time.timeBegin({ seconds: latest + 1_000_000 })).toBe(latest);
      // Whoever was given credit is known to an operator.
      const known = ({ credits, password }: Row) => ({
        verified: BigInt(password === null || Number(credits) !== 0 ? 1 : 0),
      });
      const upgraded = accounts.map((row) => ({ ...big(row), ...known(row) }));
      expect(await at.rows("SELECT * FROM accounts ORDER BY id")).toEqual(upgraded);
      const charges = runs.map(({ model, ...row }) => big({ ...row, item: model }));
      expect(await at.rows("SELECT * FROM charges ORDER BY id")).toEqual(charges);
      const days = usageDays.map(({ model, runs: count, ...row }) => big({ ...row, item: model, charges: count }));
      expect(await at.rows("SELECT * FROM usage_days ORDER BY account_id, day, item")).toEqual(days);
      for (const table of ["api_keys", "attempts", "device_logins", "entries", "links", "robot_sessions", "sign_ins"]) {
        expect([table, (await at.rows(`SELECT * FROM ${table}`)).length]).toEqual([table, ROWS[table]?.length ?? -1]);
      }
      // The run that was under way holds its money until somebody gives it back.
      expect(await store.charges.holdsExpire({ before: Number.MAX_SAFE_INTEGER })).toBe("done");
      expect((await at.rows("SELECT sum(held) AS held FROM accounts")).map(({ held }) => Number(held))).toEqual([0]);
      await expectSound(store);
    });

    test("what a clock that was ahead had written makes nothing older, and no lock-out of its days stays", async () => {
      await using at = await place(name);
      await fill(name, at);
      const ahead = Math.floor(Date.now() / 1000) + 40 * 86_400;
      const [one] = ROWS.attempts ?? [];
      await at.corrupt(`UPDATE robot_sessions SET last_at = ${ahead}`);
      await at.corrupt(
        `UPDATE attempts SET resets_at = ${ahead} WHERE name = '${String(one?.name).replaceAll("'", "''")}'`,
      );
      await at.open();
      const [{ seconds } = { seconds: 0n }] = await at.rows("SELECT seconds FROM seen_time");
      expect(Number(seconds)).toBeWithin(ahead - 41 * 86_400, ahead - 39 * 86_400);
      expect(await at.rows(`SELECT name FROM attempts WHERE resets_at >= ${ahead}`)).toEqual([]);
    });

    test("answers of schema 4 are replayed from their numbers; their content is not known", async () => {
      await using at = await place(name);
      await fill(name, at);
      const store = await at.open();
      for (const row of observations) {
        const found = await store.robot.observation(keyOf(row));
        const { generation_id: generationId, step } = row;
        if (row.reply === null) {
          expect(found).toEqual({ digest: undefined, generationId, step, answer: undefined });
          continue;
        }
        const { head, values } = meant(row);
        const rows = new Uint8Array(Float32Array.from(values).buffer);
        expect(found).toEqual({ digest: undefined, generationId, step, answer: { head, rows } });
      }
      // Nobody runs one of them again.
      const [first] = observations;
      if (!first) throw new Error("an observation");
      const { account_id: accountId } = first;
      await store.charges.hold(newCharge("again", { accountId }));
      const record = { ...keyOf(first), digest: undefined, generationId: "again", step: 0, answer: undefined };
      expect(await store.robot.settleChunk(settled("again", { accountId, observation: record }))).toBe("known");
    });

    test("replies that cannot be read become lost ones, however many there are", async () => {
      await using at = await place(name);
      await fill(name, at);
      {
        await using old = oldDatabase(name, at);
        const copy = (
          reply: string,
          count: number,
        ) => `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
          INSERT INTO observations (account_id, model, session_id, observation_id, digest, generation_id, step, reply, at)
          SELECT account_id, model, session_id, observation_id || '.' || i, digest, generation_id, step, ${reply}, at
          FROM observations, n WHERE observation_id = 'alone'`;
        await old.run(copy("reply", 600));
        await old.run(copy("'{\"choices\":[]}'", 1).replace("'.'", "'-'"));
      }
      await at.open();
      const counts =
        "SELECT count(*) AS rows, count(head) AS heads FROM observations WHERE observation_id LIKE 'alone%'";
      expect(await at.rows(counts)).toEqual([{ rows: 602n, heads: 601n }]);
    });
  });
}
