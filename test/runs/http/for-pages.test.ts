/** What pages are told of runs: of names that cannot be, and when too much is asked at once; on both stores of records. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { runsForPages } from "../../../src/runs/http/for-pages.ts";
import { Failure } from "../../../src/std/failure.ts";
import { RECORDS, RunsStage, startServers, stopServers } from "../stage.ts";

beforeAll(() => startServers("PostgreSQL"));
afterAll(stopServers);

const codeOf = (outcome: unknown) => (outcome instanceof Failure ? outcome.wireCode : outcome);

for (const combination of RECORDS) {
  describe.skipIf(combination.absent)(combination.title, () => {
    test("a run or a robot whose name cannot be is not there, and neither is a file whose path cannot be", async () => {
      await using at = await RunsStage.start(combination);
      const { accountId } = await at.person();
      const pages = runsForPages(at.service.runs);
      const request = new Request("http://localhost/");
      for (const name of ["", "a\u0000", "\ud800", "a b", "a".repeat(129)]) {
        expect(await pages.list({ accountId, robot: name, limit: 10 })).toEqual({ data: [] });
        for (const key of [
          { accountId, robot: name, run: "one" },
          { accountId, robot: "arm", run: name },
        ]) {
          const said = [await pages.manifest(key), await pages.remove(key), await pages.file(key, "a", request)];
          expect([name, ...said.map(codeOf)]).toEqual([name, ...said.map(() => "run_not_found")]);
        }
      }
      const key = { accountId, robot: "arm", run: "one" };
      for (const path of ["", "a\u0000", "\ud800", "a/../b"])
        expect([path, codeOf(await pages.file(key, path, request))]).toEqual([path, "file_not_found"]);
    });

    test("they pass the gate that requests of programs pass", async () => {
      await using at = await RunsStage.start(combination);
      const { accountId } = await at.person();
      const pages = runsForPages(at.service.runs);
      at.drills.names.add("storage_busy");
      const said = [await pages.list({ accountId, limit: 10 }), await pages.usage(accountId)];
      expect(said.map(codeOf)).toEqual(["storage_busy", "storage_busy"]);
      at.drills.names.clear();
      expect(await pages.list({ accountId, limit: 10 })).toEqual({ data: [] });
      expect(await pages.usage(accountId)).toMatchObject({ storedBytes: 0 });
    });
  });
}
