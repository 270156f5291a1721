/** The routes of whole runs. */
import { Type } from "@sinclair/typebox";
import { json as jsonBody } from "../../http/body-rules.ts";
import { json } from "../../http/operation.ts";
import { LIMITS } from "../../limits.ts";
import { RUNS } from "../errors.ts";
import { counted, done, inQuery, ok, plain, RUN } from "./declared.ts";
import { complete, erase, list, manifest, usage } from "./runs.ts";
import { Name } from "./schemas.ts";

const { run_not_found, invalid_request } = RUNS;
const { runsListedMax, runsListedDefault, runJsonBytesMax } = LIMITS;

export const RUN_ROUTES = [
  plain({
    method: "GET",
    path: "/v1/robot/runs",
    name: "runs",
    operationId: "listRuns",
    summary: "Completed runs, the newest first",
    parameters: [
      inQuery("robot", false, "Of this robot alone.", Name),
      inQuery(
        "limit",
        false,
        "Runs of one page.",
        Type.Integer({ minimum: 1, maximum: runsListedMax, default: runsListedDefault }),
      ),
      inQuery("after", false, "`next` of the page before.", Type.String()),
    ],
    responses: { "200": ok("A page of runs.", "RunList") },
    failures: [invalid_request],
    handle: list,
  }),
  plain({
    method: "GET",
    path: "/v1/robot/runs/usage",
    name: "run_usage",
    operationId: "runUsage",
    summary: "What the account stores, and this month's metering",
    responses: { "200": ok("Bytes, runs and requests.", "RunUsage") },
    failures: [],
    handle: usage,
  }),
  plain({
    method: "GET",
    path: RUN,
    name: "run",
    operationId: "getRun",
    summary: "The manifest of a completed run",
    responses: { "200": ok("The run and its files.", "RunManifest") },
    failures: [run_not_found, invalid_request],
    handle: manifest,
  }),
  plain({
    method: "DELETE",
    path: RUN,
    name: "run_delete",
    operationId: "deleteRun",
    summary: "Delete every file of a run",
    description:
      "In any state, uploads on their way included. The record goes at once, the bytes a minute later. A download that has begun goes on; one from an object store may break off, and can be resumed until the bytes are removed.",
    responses: done("The run is gone."),
    failures: [run_not_found, invalid_request],
    handle: erase,
  }),
  counted({
    method: "POST",
    path: `${RUN}/complete`,
    name: "run_complete",
    body: jsonBody(runJsonBytesMax, { smaller: "list fewer files, or send less metadata" }),
    operationId: "completeRun",
    summary: "Complete a run, so that it is listed and readable",
    description:
      "The list must name every stored file, and no other; no path may be a folder of another one, as `a` of `a/b`. From then on the run does not change. Repeated with the same list, it answers the same manifest, whose length counts as stored.",
    requestBody: { description: "The files.", required: true, content: json("RunListing") },
    responses: { "200": ok("The manifest.", "RunManifest") },
    failures: [RUNS.upload_in_progress, RUNS.run_incomplete, RUNS.run_completed, RUNS.storage_quota_exceeded],
    handle: complete,
  }),
];
