/** What the store does for a run does not grow with what was done to it before: statements and rows are counted, no time is taken. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { runsListed } from "../../../src/runs/store/reads.ts";
import { runs } from "../../../src/runs/store/runs.ts";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { onSqlite } from "../../../src/store/sqlite/statements.ts";
import { drive, first, type Statement, type Steps } from "../../../src/store/steps.ts";
import { AT } from "../../store/rows.ts";
import { commit, joined, joining, KEY, listed, newFile, newPart, newUpload } from "./rows.ts";

const { accountId } = KEY;
const { writes } = runs;

interface Asked {
  readonly statement: Statement;
  readonly outcome: unknown;
}

function workOf(asked: readonly Asked[]) {
  const rows = asked.reduce((sum, { outcome }) => sum + (Array.isArray(outcome) ? outcome.length : 0), 0);
  return { statements: asked.length, rows };
}

/** An empty database, and what was asked of it. */
function database() {
  const db = new Database(":memory:", { strict: true, safeIntegers: true });
  migrate(db);
  const execute = onSqlite(db);
  const asked: Asked[] = [];
  const run = <T>(steps: Steps<T>): T =>
    drive(steps, (statement) => {
      const outcome = execute(statement);
      asked.push({ statement, outcome });
      return outcome;
    });
  const upload = (uploadId: string, path: string) => {
    run(writes.uploadBegin(newUpload(uploadId, path)));
    for (const part of [1, 2]) run(writes.partCommit(newPart(uploadId, part)));
    run(writes.joinBegin(joining(uploadId)));
    return run(writes.joinCommit(joined(uploadId)));
  };
  const count = (table: string) => Number(run(first<{ n: bigint }>(`SELECT count(*) AS n FROM ${table}`))?.n);
  return { db, run, asked, upload, count, [Symbol.dispose]: () => db.close() };
}

/** Adds rows of `count` finished uploads, each of two parts and of another path. */
function fill(db: Database, count: number): void {
  const made = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  db.run(`INSERT INTO run_uploads (id, account_id, run_id, path, blob_id, size, part_size, state, expires_at)
    ${made} SELECT 'old' || i, 'a1', 'run_1', 'old' || i, 'blob_old' || i, 10, 5, 'done', ${AT} FROM n`);
  db.run(`INSERT INTO run_parts (upload_id, part, tag, size, sha256)
    ${made} SELECT 'old' || i, part, 'x', 5, zeroblob(32) FROM n, (SELECT 1 AS part UNION SELECT 2)`);
}

test("completing and deleting a run is as much work with 5,000 finished uploads as with none", () => {
  const work = [0, 5_000].map((count) => {
    using at = database();
    const { run, asked } = at;
    run(writes.fileBegin(newFile("blob_1")));
    run(writes.fileCommit(commit("blob_1")));
    run(writes.uploadBegin(newUpload("up_1", "b")));
    fill(at.db, count);
    asked.length = 0;
    expect(run(writes.runComplete(listed(["a", 5])))).toEqual({ unfinished: "b" });
    const completing = workOf(asked);
    asked.length = 0;
    expect(run(writes.runDelete({ ...KEY, cause: "del_1", at: AT }))).toBe("deleted");
    const deleting = workOf(asked);
    expect([at.count("run_uploads"), at.count("run_parts"), at.count("robot_runs")]).toEqual([0, 0, 0]);
    return { completing, deleting };
  });
  expect(work[1]).toEqual(work[0]);
});

test("of finished uploads those of files that are there stay, of each path the last one", () => {
  using at = database();
  for (const round of [1, 2, 3, 4]) for (const path of ["a", "b"]) at.upload(`up_${path}${round}`, path);
  const left = () => at.db.query<{ id: string }, []>("SELECT id FROM run_uploads ORDER BY id").all();
  expect(left()).toEqual([{ id: "up_a4" }, { id: "up_b4" }]);
  expect(at.count("run_parts")).toBe(4);
  at.run(writes.fileDelete({ ...KEY, path: "b", cause: "del_1", at: AT }));
  expect(left()).toEqual([{ id: "up_a4" }]);
  expect(at.count("run_parts")).toBe(2);
});

test("a page of the list is read in its order from an index, of all robots and of one", () => {
  using at = database();
  // The planner has seen no run, so the plan is that of an account of any size.
  for (const robot of [undefined, "arm"]) {
    for (const after of [undefined, { completedAt: AT, id: "run_1" }]) {
      at.asked.length = 0;
      at.run(runsListed({ accountId, robot, after, limit: 10 }));
      const [{ statement } = { statement: undefined }] = at.asked;
      if (!statement) throw new Error("nothing was asked");
      const plan = drive(
        (function* (): Steps<unknown> {
          return yield { ...statement, text: `EXPLAIN QUERY PLAN ${statement.text}` };
        })(),
        onSqlite(at.db),
      );
      const index =
        robot === undefined ? "robot_runs_completed (account_id=?" : "robot_runs_of (account_id=? AND robot=?";
      expect(Bun.inspect(plan)).toContain(`USING INDEX ${index}`);
      expect(Bun.inspect(plan)).not.toContain("TEMP B-TREE");
    }
  }
});
