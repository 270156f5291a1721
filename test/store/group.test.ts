import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { commitGroup } from "../../src/store/group.ts";
import { migrate } from "../../src/store/migrations.ts";
import { readsOn, writesOn } from "../../src/store/operations.ts";
import { forSqlite } from "../../src/store/sql.ts";

function database(): Database {
  const db = new Database(":memory:", { strict: true });
  db.run("PRAGMA foreign_keys = ON");
  expect(migrate(db)).toBeUndefined();
  return db;
}

test("a group is one transaction: when one write of it cannot be done, none is", () => {
  const db = database();
  const broken = { id: "a2", email: null, createdAt: 1 };
  const replies = commitGroup(db, writesOn(db), [
    { id: 1, name: "accountAdd", argument: { id: "a1", email: "one", createdAt: 1 } },
    { id: 2, name: "accountAdd", argument: broken },
  ]);
  expect(replies.map((reply) => reply.down !== undefined)).toEqual([true, true]);
  expect(readsOn(db).accountByEmail("one")).toBeUndefined();
});

test("later writes of a group see the earlier ones", () => {
  const db = database();
  const replies = commitGroup(db, writesOn(db), [
    { id: 1, name: "accountAdd", argument: { id: "a1", email: "one", createdAt: 1 } },
    { id: 2, name: "accountAdd", argument: { id: "a2", email: "one", createdAt: 1 } },
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
