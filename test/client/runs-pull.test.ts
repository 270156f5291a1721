import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pull } from "../../src/client/runs/pull.ts";
import { FakeRuns } from "./fake-runs.ts";
import { bad, Heard } from "./runs-place.ts";
import { pullCases } from "./runs-pull-cases.ts";

pullCases("the fake service", async () => new FakeRuns());

test("a service that lists a path that leads out of the folder is not believed", async () => {
  const dir = await mkdtemp(join(tmpdir(), "tendon-pull-"));
  let path = "";
  const file = () => ({ path, size: 1, sha256: "0".repeat(64), content_type: "text/plain" });
  const facts = { object: "robot.run", robot: "r", run: "r", completed_at: 1, size: 1, metadata: {} };
  await using evil = Bun.serve({ port: 0, fetch: () => Response.json({ ...facts, files: [file(), file()] }) });
  const service = { url: evil.url.origin, apiKey: "tdn_x" };
  const run = { robot: "r", run: "r" };
  for (path of ["../up", "/etc/x", "a/../../up", "a\\..\\up", "a//b", "", "a\nb", "x".repeat(513), "twice"]) {
    const outcome = await pull(service, { run, folder: join(dir, "copy"), parallel: 1 }, new Heard());
    expect([path, bad(outcome).message]).toEqual([path, expect.stringContaining("nothing was written")]);
  }
  expect(await readdir(dir)).toEqual([]);
  await rm(dir, { recursive: true });
});
