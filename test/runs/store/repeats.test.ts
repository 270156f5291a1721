/** A write that is repeated after an answer that was lost does nothing more, and says what it said first (src/store/store.ts). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runs as domain, type RunStore } from "../../../src/runs/store/runs.ts";
import { ENGINES, type EngineName, place, startServer, stopServer } from "../../store/engines.ts";
import { AT } from "../../store/rows.ts";
import {
  commit,
  joined,
  joining,
  KEY,
  listed,
  MONTH,
  newFile,
  newPart,
  newUpload,
  sent,
  stored,
  told,
  uploaded,
} from "./rows.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

const { accountId } = KEY;
const TABLES = [
  "run_accounts",
  "robot_runs",
  "run_files",
  "run_uploads",
  "run_parts",
  "run_blobs",
  "run_months",
  "run_store",
  "run_meters",
];

/** Every write of the domain, and every outcome that changes something. */
async function everything(runs: RunStore): Promise<void> {
  await stored(runs, "blob_1");
  await stored(runs, "blob_2");
  await told(runs.fileBegin(newFile("blob_3", "b")));
  await told(runs.fileAbort({ accountId, blobId: "blob_3", at: AT }));
  await told(runs.fileDelete({ ...KEY, path: "a", cause: "del_1", at: AT }));
  await uploaded(runs, "up_1");
  await sent(runs, "up_2", "b");
  await told(runs.partCommit(newPart("up_2", 1, "1-y")));
  await told(runs.partsDrop({ accountId, uploadId: "up_2", lost: [1] }));
  await told(runs.partCommit(newPart("up_2", 1, "1-z")));
  await told(runs.joinBegin(joining("up_2")));
  await told(runs.joinEnd({ accountId, uploadId: "up_2", attempt: "join_up_2", lost: [2] }));
  await told(runs.uploadLost({ accountId, uploadId: "up_2", token: "t" }));
  await told(runs.uploadDrop({ accountId, uploadId: "up_2", at: AT }));
  await told(runs.fileBegin(newFile("blob_4", "b")));
  await told(runs.runComplete(listed(["a", 10])));
  await told(runs.fileCommit(commit("blob_4")));
  await told(runs.uploadsForget({ before: AT + 2_000 }));
  await told(runs.runDelete({ ...KEY, cause: "del_2", at: AT }));
  await told(runs.blobsDefer({ ids: ["blob_2"], at: AT + 9 }));
  await told(runs.blobsForget({ ids: ["blob_1"] }));
  await told(runs.blobsUnnamed({ ids: ["blob_9"], at: AT }));
  await told(runs.runsMark({ found: "", id: "store_1", generation: "gen_1", adopt: false }));
  await told(runs.runsMark({ found: "store_1 gen_1", id: "store_2", generation: "gen_2", adopt: false }));
  await told(runs.runsMark({ found: "store_3 gen_3", id: "store_2", generation: "gen_4", adopt: false }));
  await told(runs.runsMark({ found: "store_3 gen_3", id: "store_2", generation: "gen_5", adopt: true }));
  await told(runs.runsMeter({ owner: "o", flush: 1, at: AT, metered: METERED }));
  await told(runs.runsMeter({ owner: "o", flush: 2, at: AT, metered: METERED }));
}

const METERED = [
  { accountId, month: MONTH + 1, downloaded: 7, requests: 1 },
  { accountId, month: MONTH, downloaded: 5, requests: 2 },
];

const { writes } = domain;

/** The same operations, each write called twice, as by PostgreSQL when an answer is lost. */
function twice(runs: RunStore, called: Set<string>): RunStore {
  const doubled = Object.keys(writes).map((name) => {
    const write = runs[name as keyof typeof writes] as (argument: unknown) => Promise<unknown>;
    return [
      name,
      async (argument: unknown) => {
        called.add(name);
        const said = await write(argument);
        expect([name, argument, await write(argument)]).toEqual([name, argument, said]);
        return said;
      },
    ] as const;
  });
  return { ...runs, ...Object.fromEntries(doubled) };
}

async function opened(engine: EngineName) {
  const at = await place(engine);
  const { runs } = await at.open();
  return {
    ...at,
    runs,
    rows: at.rows,
    [Symbol.asyncDispose]: async () => {
      expect(await runs.runTotalsWrong()).toEqual([]);
      await at[Symbol.asyncDispose]();
    },
  };
}

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    const given = (what: string, work: (at: Awaited<ReturnType<typeof opened>>) => Promise<void>) =>
      test(what, async () => {
        await using at = await opened(name);
        await work(at);
      });

    test("every write that is called twice says the same twice, and leaves what it leaves when it is called once", async () => {
      await using once = await opened(name);
      await using again = await opened(name);
      const called = new Set<string>();
      await everything(once.runs);
      await everything(twice(again.runs, called));
      expect([...called].sort()).toEqual(Object.keys(writes).sort());
      for (const table of TABLES) {
        const all = async (at: typeof once) => (await at.rows(`SELECT * FROM ${table}`)).map((row) => Bun.inspect(row));
        const left = (await all(once)).sort();
        expect([table, left.length > 0 || /run_(files|uploads|parts)|robot_runs/.test(table)]).toEqual([table, true]);
        expect([table, (await all(again)).sort()]).toEqual([table, left]);
      }
    });

    given(
      "a stored file has the same outcome again, whatever has replaced or deleted it since",
      async ({ runs, rows }) => {
        expect(await stored(runs, "blob_1")).toEqual({ replaced: false });
        expect(await stored(runs, "blob_2")).toEqual({ replaced: true });
        await stored(runs, "blob_3");
        await stored(runs, "blob_4", "b");
        await runs.fileDelete({ ...KEY, path: "b", cause: "del_1", at: AT });
        await stored(runs, "blob_5", "c");
        await runs.runDelete({ ...KEY, cause: "del_2", at: AT });
        const replaced = Object.entries({ blob_1: false, blob_2: true, blob_3: true, blob_4: false, blob_5: false });
        for (const [blobId, was] of replaced) expect(await runs.fileCommit(commit(blobId))).toEqual({ replaced: was });
        expect(await rows("SELECT * FROM run_files")).toEqual([]);
      },
    );

    given("a file that was too late for its run is refused alike again, also after the run", async ({ runs }) => {
      await stored(runs, "blob_1");
      await runs.fileBegin(newFile("blob_2", "b"));
      await runs.fileBegin(newFile("blob_3", "c"));
      await told(runs.runComplete(listed(["a", 5])));
      expect(await runs.fileCommit(commit("blob_2"))).toBe("run_completed");
      await runs.fileAbort({ accountId, blobId: "blob_2", at: AT });
      await runs.runDelete({ ...KEY, cause: "del_1", at: AT });
      expect(await runs.fileCommit(commit("blob_2"))).toBe("run_completed");
      expect([await runs.fileCommit(commit("blob_3")), await runs.fileCommit(commit("blob_3"))]).toEqual([
        "gone",
        "gone",
      ]);
      await runs.fileAbort({ accountId, blobId: "blob_3", at: AT });
    });

    given(
      "a file whose condition fails when it is stored is refused, and its reservation can be ended",
      async ({ runs }) => {
        const precondition = { isNot: "any" } as const;
        for (const id of ["blob_1", "blob_2"]) await runs.fileBegin({ ...newFile(id), precondition });
        expect(await runs.fileCommit({ ...commit("blob_1"), precondition })).toEqual({ replaced: false });
        for (const _ of [1, 2]) {
          expect(await runs.fileCommit({ ...commit("blob_2"), precondition })).toBe("precondition_failed");
        }
        await runs.fileAbort({ accountId, blobId: "blob_2", at: AT });
        expect(await runs.fileBegin({ ...newFile("blob_3"), precondition })).toBe("precondition_failed");
        expect(await runs.fileCommit({ ...commit("blob_1"), precondition })).toEqual({ replaced: false });
        expect(await runs.runUsage({ accountId, month: MONTH })).toMatchObject({ stored: 5 + 2 * 1024, reserved: 0 });
      },
    );

    given("a joined upload has the same outcome again, whatever has become of its file since", async ({ runs }) => {
      expect(await uploaded(runs, "up_1")).toEqual({ replaced: false });
      expect(await uploaded(runs, "up_2")).toEqual({ replaced: true });
      await stored(runs, "blob_1");
      expect(await uploaded(runs, "up_3", "b")).toEqual({ replaced: false });
      await runs.fileDelete({ ...KEY, path: "b", cause: "del_1", at: AT });
      await runs.runDelete({ ...KEY, cause: "del_2", at: AT });
      const said = ["up_1", "up_2", "up_3"].map((id) => runs.joinCommit(joined(id)));
      expect(await Promise.all(said)).toEqual([{ replaced: false }, { replaced: true }, { replaced: false }]);
    });

    given("an upload that was begun and dropped since does not begin anew", async ({ runs, rows }) => {
      for (const [id, end] of [
        ["up_1", () => runs.uploadDrop({ accountId, uploadId: "up_1", at: AT })],
        ["up_2", () => runs.runDelete({ ...KEY, cause: "del_1", at: AT })],
      ] as const) {
        await sent(runs, id);
        await told<unknown>(end());
        expect(await runs.uploadBegin(newUpload(id))).toBe("begun");
      }
      await uploaded(runs, "up_3");
      await runs.runDelete({ ...KEY, cause: "del_2", at: AT });
      expect(await runs.uploadBegin(newUpload("up_3"))).toBe("begun");
      expect(await rows("SELECT id FROM run_uploads")).toEqual([]);
      expect(await runs.runUsage({ accountId, month: MONTH })).toMatchObject({ stored: 0, reserved: 0 });
    });

    given("a stored part has the same outcome again, also when the upload is finished since", async ({ runs }) => {
      await sent(runs, "up_1");
      const again = newPart("up_1", 1, "1-y");
      for (const _ of [1, 2]) expect(await runs.partCommit(again)).toEqual({ replaced: "1-x" });
      await told(runs.joinBegin(joining("up_1")));
      expect(await runs.partCommit(again)).toEqual({ replaced: "1-x" });
      await told(runs.joinCommit(joined("up_1")));
      expect(await runs.partCommit(again)).toEqual({ replaced: "1-x" });
      expect(await runs.partCommit(newPart("up_1", 1, "1-z"))).toBe("gone");
    });

    given("a flush of the meter counts once, and meters that ended long ago are forgotten", async ({ runs, rows }) => {
      const flush = (number: number, owner = "o", when = AT) =>
        told(runs.runsMeter({ owner, flush: number, at: when, metered: METERED }));
      for (const number of [1, 1, 2, 2, 3, 3]) await flush(number);
      await flush(1, "other");
      const counted = { downloaded: 4 * 5, requests: 4 * 2 };
      expect(await runs.runUsage({ accountId, month: MONTH })).toMatchObject(counted);
      await flush(1, "later", AT + 8 * 86_400);
      expect(await rows("SELECT owner FROM run_meters")).toEqual([{ owner: "later" }]);
    });
  });
}
