/** Run storage as the pages for people use it: the same functions as those of the routes. */
import { Failure } from "../../error/core.ts";
import type { RunDeps } from "../../runs/deps.ts";
import { gated } from "../../runs/gate.ts";
import { listRuns, manifestOf, usageOf } from "../../runs/read.ts";
import { removeRun } from "../../runs/remove.ts";
import type { RunsForPages } from "../pages/runs.ts";
import { download } from "./download.ts";
import { placeText, readPlace } from "./runs.ts";

export function runsForPages(deps: RunDeps): RunsForPages {
  return {
    list: async ({ accountId, robot, limit, after }) => {
      const place = readPlace(after);
      if (place instanceof Failure) return place;
      const page = await listRuns(deps, { accountId, robot, limit, after: place });
      if (page instanceof Failure) return page;
      return { data: page.runs, ...(page.next && { next: placeText(page.next) }) };
    },
    manifest: (key) => gated(deps, key, () => manifestOf(deps, key)),
    remove: (key) => gated(deps, key, () => removeRun(deps, key)),
    usage: async (accountId) => {
      const usage = await usageOf(deps, accountId);
      if (usage instanceof Failure) return usage;
      const { stored, reserved } = usage;
      return { storedBytes: stored, reservedBytes: reserved, quotaBytes: deps.bounds.accountBytesMax };
    },
    file: (key, path, request) => gated(deps, key, (keep) => download(deps, { ...key, path }, request, keep)),
  };
}
