/** Functions of PostgreSQL by the hash of their text, and the schema in its types. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import postgres from "postgres";
import type { Settlement } from "../../../src/charge/store/records.ts";
import { SETTLE_DECLARE, SETTLE_SQL, settle, settlementOrder } from "../../../src/charge/store/settle.ts";
import { DOMAINS } from "../../../src/service/domains.ts";
import type { DomainOf } from "../../../src/store/domain.ts";
import { functionsOf, schemaForPostgres } from "../../../src/store/postgres/migrate.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { changes, type Steps } from "../../../src/store/steps.ts";
import { funded } from "../../account/fake-store.ts";
import { onPostgres, place, startServer, stopServer, usable } from "../engines.ts";
import { newCharge, settled } from "../rows.ts";

test("PostgreSQL's schema has 64-bit integers and no words of SQLite", () => {
  expect(
    schemaForPostgres("CREATE TABLE t (\n  a BLOB PRIMARY KEY,\n  b INTEGER NOT NULL\n) STRICT, WITHOUT ROWID;\n"),
  ).toBe("CREATE TABLE t (\n  a BYTEA PRIMARY KEY,\n  b BIGINT NOT NULL\n);\n");
});

/** The domains of a later version, whose `release` says the same in another text. */
const { release } = DOMAINS.charges.hot;
const LATER = {
  ...DOMAINS,
  charges: {
    ...DOMAINS.charges,
    hot: { ...DOMAINS.charges.hot, release: { ...release, sql: release.sql.replace("BEGIN", "BEGIN -- later") } },
  },
};

test("functions are named by the hash of all their texts", () => {
  const [now, again, later] = [DOMAINS, { ...DOMAINS }, LATER].map(functionsOf);
  expect(again).toEqual(now);
  expect(later?.apply).not.toBe(now?.apply);
  expect(now?.apply).toMatch(/^tendon_apply_[0-9a-f]{8}$/);
  expect(now?.statements.map((text) => /FUNCTION (\w+)_/.exec(text)?.[1])).toEqual([
    "tendon_charges_hold",
    "tendon_charges_release",
    "tendon_robot_settlechunk",
    "tendon_apply",
  ]);
});

/** A surface that this program does not have. */
function* record(settlement: Settlement): Steps<"kept" | "not_held"> {
  if ((yield* settle(settlement)) !== "settled") return "not_held";
  yield* changes("INSERT INTO records (id) VALUES ($1)", settlement.chargeId);
  return "kept";
}

const writes = { record };
const records = {
  reads: {},
  writes,
  notDurable: [],
  hot: {
    record: {
      sql: `
DECLARE ${SETTLE_DECLARE}
BEGIN
  PERFORM 1 FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  ${SETTLE_SQL}
  IF r.id IS NULL THEN RETURN 'not_held'; END IF;
  INSERT INTO records (id) VALUES (r.id);
  RETURN 'kept';
END`,
      order: settlementOrder,
    },
  },
} as const satisfies DomainOf<object, typeof writes>;

onPostgres(() => {
  beforeAll(startServer, 60_000);
  afterAll(stopServer);

  test("a changed text makes new functions, an unchanged one changes nothing; nodes of both versions work", async () => {
    await using at = await place("PostgreSQL");
    const url = at.environment.DATABASE_URL ?? "";
    const client = postgres(url, { max: 1 });
    const functions = async () =>
      (await client.unsafe("SELECT proname, xmin::text FROM pg_proc WHERE proname LIKE 'tendon%' ORDER BY oid")).map(
        ({ proname, xmin }) => `${proname} ${xmin}`,
      );
    const now = await at.open();
    const first = await functions();
    expect(first).toHaveLength(4);
    await at.open();
    expect(await functions()).toEqual(first);
    const later = usable(await openPostgresStore(LATER, url));
    const both = await functions();
    expect([both.length, both.slice(0, 4)]).toEqual([8, first]);
    await now.accounts.accountAdd(funded("a1", "one@example.org"));
    expect([
      await now.charges.hold(newCharge("r1")),
      await later.charges.hold(newCharge("r2")),
      await now.charges.release({ chargeId: "r2", accountId: "a1" }),
      await later.robot.settleChunk(settled("r1")),
    ]).toEqual(["held", "held", "released", "kept"]);
    await later.close();
    await client.end();
  }, 60_000);

  test("another surface settles with its own record, in one function, beside what there is", async () => {
    await using at = await place("PostgreSQL");
    const store = usable(await openPostgresStore({ ...DOMAINS, records }, at.environment.DATABASE_URL ?? ""));
    await at.corrupt("CREATE TABLE records (id TEXT PRIMARY KEY)");
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    await store.charges.hold(newCharge("r1"));
    const { session: _, observation: __, ...settlement } = settled("r1");
    const outcomes = [await store.records.record(settlement), await store.records.record(settlement)];
    expect([outcomes, await at.rows("SELECT id FROM records")]).toEqual([["kept", "not_held"], [{ id: "r1" }]]);
    expect(await store.charges.ledgerCheck()).toMatchObject({ entries: 4n, problem: undefined });
    await store.close();
  }, 60_000);
});
