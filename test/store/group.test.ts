import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { forSqlite, onSqlite, schemaForPostgres } from "../../src/store/dialect.ts";
import { commitGroup } from "../../src/store/group.ts";
import { migrate } from "../../src/store/migrations.ts";
import { READS } from "../../src/store/operations.ts";
import { drive } from "../../src/store/steps.ts";
import { funded } from "../account/fake-store.ts";
import { temporaryFolder } from "./temporary.ts";

function database(): Database {
  const db = new Database(":memory:", { strict: true, safeIntegers: true });
  db.run("PRAGMA foreign_keys = ON");
  expect(migrate(db)).toBeUndefined();
  return db;
}

test("a write that cannot be done takes no other one of its group with it", () => {
  const db = database();
  const broken = { ...funded("a2", "two"), email: null };
  const replies = commitGroup(db, [
    { id: 1, name: "accountAdd", argument: funded("a1", "one") },
    { id: 2, name: "accountAdd", argument: broken },
    { id: 3, name: "accountAdd", argument: funded("a3", "three") },
  ]);
  expect(replies.map(({ id, result, down }) => [id, result ?? (down !== undefined && "down")])).toEqual([
    [1, "added"],
    [2, "down"],
    [3, "added"],
  ]);
  const ids = drive(READS.accounts("all"), onSqlite(db)).map(({ id }) => id);
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
    name: "accountAdd" as const,
    argument: funded(name, name),
  }));
  expect(commitGroup(db, group)).toEqual([0, 1, 2].map((id) => ({ id, down: "database is locked" })));
  expect(tries).toHaveBeenCalledTimes(1);
  other.run("COMMIT");
  expect(commitGroup(db, group)).toEqual([0, 1, 2].map((id) => ({ id, result: "added" })));
});

test("later writes of a group see the earlier ones", () => {
  const db = database();
  const replies = commitGroup(db, [
    { id: 1, name: "accountAdd", argument: funded("a1", "one") },
    { id: 2, name: "accountAdd", argument: funded("a2", "one") },
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

test("PostgreSQL's schema has 64-bit integers and no words of SQLite", () => {
  expect(
    schemaForPostgres("CREATE TABLE t (\n  a BLOB PRIMARY KEY,\n  b INTEGER NOT NULL\n) STRICT, WITHOUT ROWID;\n"),
  ).toBe("CREATE TABLE t (\n  a BYTEA PRIMARY KEY,\n  b BIGINT NOT NULL\n);\n");
});
