/** The pages with runs in folders of this test. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DeviceLogins } from "../../../src/account/device-login.ts";
import { pages } from "../../../src/account/pages/routes.ts";
import { publicApp } from "../../../src/http/app.ts";
import { runPages } from "../../../src/runs/pages/routes.ts";
import { type Stage, stage } from "../../robot/stage.ts";
import { FakeRuns } from "./fake-runs.ts";

export interface RunsStage extends Stage, AsyncDisposable {
  readonly runs: FakeRuns;
  /** A new folder of the test. */
  folder(): Promise<string>;
}

export async function runsStage(): Promise<RunsStage> {
  const at = await stage();
  const { clock, store, service } = at;
  const { keys } = service.core;
  const { people } = service;
  const runs = new FakeRuns();
  const deviceLogins = new DeviceLogins(store, people, clock);
  const app = publicApp(service.http, [
    pages({ clock, store, keys, people, deviceLogins, isLanguage: () => false }),
    runPages({ people, runs }),
  ]);
  const handle: Stage["handle"] = async (request) => app.handle(request);
  const root = await mkdtemp(join(tmpdir(), "tendon-runs-"));
  return {
    ...at,
    app,
    runs,
    handle,
    send: (path, init) => handle(new Request(`http://localhost${path}`, init ?? {})),
    folder: () => mkdtemp(join(root, "run-")),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}
