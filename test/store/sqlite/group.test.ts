import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { list } from "../../../src/account/store/accounts.ts";
import { DOMAINS } from "../../../src/service/domains.ts";
import { everyWrite } from "../../../src/store/domain.ts";
import { commitGroup, warmGroup } from "../../../src/store/sqlite/group.ts";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { forSqlite, onSqlite } from "../../../src/store/sqlite/statements.ts";
import { drive } from "../../../src/store/steps.ts";
import { funded } from "../../account/fake-store.ts";
import { temporaryFolder } from "../temporary.ts";

const WRITES = new Map(everyWrite(DOMAINS).map((operation) => [operation.key, operation]));

function database(): Database {
  const db = new Database(":memory:", { strict: true, safeIntegers: true });
  db.run("PRAGMA foreign_keys = ON");
  expect(migrate(db)).toBeUndefined();
  return db;
}

test("a write that cannot be done takes no other one of its group with it", () => {
  const db = database();
  const broken = { ...funded("a2", "two"), email: null };
  const replies = commitGroup(db, WRITES, [
    { id: 1, key: "accounts.accountAdd", argument: funded("a1", "one") },
    { id: 2, key: "accounts.accountAdd", argument: broken },
    { id: 3, key: "accounts.accountAdd", argument: funded("a3", "three") },
  ]);
  expect(replies.map(({ id, result, down }) => [id, result ?? (down !== undefined && "down")])).toEqual([
    [1, "added"],
    [2, "down"],
    [3, "added"],
  ]);
  const ids = drive(list(), onSqlite(db)).map(({ id }) => id);
  expect(ids).toEqual(["a1", "a3"]);
});

test("a lock of another process is waited for once by the whole group, of which then nothing is kept", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "tendon.sqlite");
  using db = new Database(path, { strict: true, safeIntegers: true });
  expect(migrate(db)).toBeUndefined();
  db.run("PRAGMA busy_timeout = 1");
  using other = new Database(path);
  other.run("BEGIN IMMEDIATE");
  using tries = spyOn(db, "transaction");
  const group = ["a1", "a2", "a3"].map((name, id) => ({
    id,
    key: "accounts.accountAdd",
    argument: funded(name, name),
  }));
  expect(commitGroup(db, WRITES, group)).toEqual([0, 1, 2].map((id) => ({ id, down: "database is locked" })));
  expect(tries).toHaveBeenCalledTimes(1);
  other.run("COMMIT");
  expect(commitGroup(db, WRITES, group)).toEqual([0, 1, 2].map((id) => ({ id, result: "added" })));
});

test("later writes of a group see the earlier ones", () => {
  const db = database();
  const replies = commitGroup(db, WRITES, [
    { id: 1, key: "accounts.accountAdd", argument: funded("a1", "one") },
    { id: 2, key: "accounts.accountAdd", argument: funded("a2", "one") },
  ]);
  expect(replies).toEqual([
    { id: 1, result: "added" },
    { id: 2, result: "email_taken" },
  ]);
});

test("parameters are bound by number, not by first appearance", () => {
  const db = database();
  const sql = forSqlite("SELECT $2 AS second, $1 AS first");
  expect(db.query<object, [string, string]>(sql).get("one", "two")).toEqual({ second: "two", first: "one" });
});

test("writes that warm up are taken back, also where one fails, and their statements stay prepared", () => {
  const db = database();
  const add = (id: string) => ({ key: "accounts.accountAdd", argument: funded(id, id) });
  const ids = () => drive(list(), onSqlite(db)).map(({ id }) => id);
  const broken = { key: "accounts.accountAdd", argument: { ...funded("a2", "a2"), email: null } };
  for (const calls of [[add("a1")], [add("a1"), broken, add("a3")], [{ key: "accounts.unknown", argument: 0 }]]) {
    warmGroup(db, WRITES, calls);
    expect([ids(), db.inTransaction]).toEqual([[], false]);
  }
  using prepared = spyOn(db, "prepare");
  expect(commitGroup(db, WRITES, [{ id: 1, ...add("a1") }])).toEqual([{ id: 1, result: "added" }]);
  expect(ids()).toEqual(["a1"]);
  expect(prepared.mock.calls).toEqual([]);
});
