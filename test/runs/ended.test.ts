/** What a process left that is known to have ended: not only its responses, also the files that it received. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import { RunsStage } from "./stage.ts";

test("a process that does not show that it lives has its half-received files and its joins ended", async () => {
  await using at = await RunsStage.start();
  const ann = await at.person();
  const { service, store } = at;
  const { accountId } = ann;
  const names = { accountId, robot: "arm", run: "one" };
  const file = { ...names, path: "a", runId: "run_x", blobId: "blob_x", size: 7, owner: "node_gone", at: 1 };
  expect(await store.runs.fileBegin({ ...file, ...service.runs.bounds })).toBe("begun");
  const id = await ann.begun("one", "b", { size: 5 });
  await ann.part("one", "b", id, 1, "12345");
  const joining = { accountId, uploadId: id, owner: "node_gone", attempt: "join_x", at: 1 };
  const begun = await store.runs.joinBegin({ ...joining, accountBytesMax: LIMITS.runsAccountBytesMax });
  expect(begun).toMatchObject({ upload: { id } });
  expect(await ann.room()).toEqual([0, 7 + 5 + 5]);
  await service.llm.owners.start(false, "node_gone");
  expect(await ann.room()).toEqual([0, 5]);
  expect((await ann.finish("one", "b", id)).status).toBe(200);
});
