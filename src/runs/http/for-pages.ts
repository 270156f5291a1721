/** Run storage as the pages for people use it: the same functions as those of the routes. */
import { Failure } from "../../std/failure.ts";
import type { RunDeps } from "../deps.ts";
import { fileNotFound, runGone, runNotFound } from "../failures.ts";
import { gated } from "../gate.ts";
import { nameProblem, pathProblem } from "../names.ts";
import type { RunsForPages } from "../pages/runs.ts";
import { listRuns, manifestOf, usageOf } from "../read.ts";
import { removeRun } from "../remove.ts";
import type { RunKey } from "../store/records.ts";
import { download } from "./download.ts";
import { placeText, readPlace } from "./runs.ts";

/** What cannot be a name is no run's, and no database takes every text. */
function cannotBe({ robot, run }: RunKey): boolean {
  return nameProblem(robot) !== undefined || nameProblem(run) !== undefined;
}

/** Of no run. */
function ofAccount(accountId: string): RunKey {
  return { accountId, robot: "", run: "" };
}

export function runsForPages(deps: RunDeps): RunsForPages {
  return {
    list: async ({ accountId, robot, limit, after }) => {
      const place = readPlace(after);
      if (place instanceof Failure) return place;
      if (robot !== undefined && nameProblem(robot) !== undefined) return { data: [] };
      const listing = { accountId, robot, limit, after: place };
      const page = await gated(deps, ofAccount(accountId), () => listRuns(deps, listing));
      if (page instanceof Failure) return page;
      return { data: page.runs, ...(page.next && { next: placeText(page.next) }) };
    },
    manifest: async (key) => (cannotBe(key) ? runNotFound() : await gated(deps, key, () => manifestOf(deps, key))),
    remove: async (key) => (cannotBe(key) ? runGone() : await gated(deps, key, () => removeRun(deps, key))),
    usage: async (accountId) => {
      const usage = await gated(deps, ofAccount(accountId), () => usageOf(deps, accountId));
      if (usage instanceof Failure) return usage;
      const { stored, reserved } = usage;
      return { storedBytes: stored, reservedBytes: reserved, quotaBytes: deps.bounds.accountBytesMax };
    },
    file: async (key, path, request) => {
      if (cannotBe(key)) return runNotFound();
      if (!path.isWellFormed() || pathProblem(path.split("/")) !== undefined) return fileNotFound();
      return await gated(deps, key, (keep) => download(deps, { ...key, path }, request, keep));
    },
  };
}
