/** Which of the transfers that are remembered can be missed: neither those that retention has summed up, nor another database's. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { HighWater, type Mark } from "../../../src/store/postgres/high-water.ts";
import { drive, type Statement, type Steps } from "../../../src/store/steps.ts";
import type { LedgerChange, Transfer } from "../../../src/store/store.ts";
import { FakeClock } from "../../std/fake-clock.ts";

const AT = 1_700_000_000;

/** A server that has `ids`, has seen time until `seen`, and whose database has the number `database`. */
async function changes(ids: readonly string[], seen: number | null, database: string, kept: Mark) {
  const answer = ({ text }: Statement) => {
    if (text.includes("pg_is_in_recovery"))
      return [{ standby: false, seen: seen === null ? null : BigInt(seen), ids: ids.join(" ") || null }];
    if (text.includes("pg_database")) return [{ id: database }];
    return [{ id: text.includes("system_identifier") ? "7" : "00000001" }];
  };
  const pool = { read: async <R>(steps: () => Steps<R>): Promise<R> => drive(steps(), answer) };
  const file = { read: async () => kept, write: async () => {} };
  const told: LedgerChange[] = [];
  const water = new HighWater(pool as unknown as ConstructorParameters<typeof HighWater>[0], new FakeClock(), file);
  await water.start();
  water.onChange((change) => told.push(change));
  await water.close();
  return told.map(({ missing }) => missing.map(({ id }) => id));
}

const transfer = (id: string, at: number): Transfer => ({ id, accountId: "a", amount: 1n, at });
const server = { system: "7", timeline: "00000001", database: "5" };

test("a transfer that is gone is told as long as retention cannot have summed it up", async () => {
  const kept = { server, transfers: [transfer("t1", AT), transfer("t2", AT)] };
  expect(await changes(["t1"], AT + 60, "5", kept)).toEqual([["t2"]]);
  expect(await changes(["t1"], null, "5", kept)).toEqual([["t2"]]);
  expect(await changes(["t1", "t2"], AT + 60, "5", kept)).toEqual([]);
  expect(await changes([], AT + LIMITS.storeMarkSeconds + 1, "5", kept)).toEqual([]);
});

test("another database of the same server lacks what it never had: only the change is told", async () => {
  const kept = { server, transfers: [transfer("t1", AT)] };
  expect(await changes([], AT + 60, "6", kept)).toEqual([[]]);
});
