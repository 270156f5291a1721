/** The form in which the routes of run storage are declared, each with its words for people and programs. */
import { type TSchema, Type } from "@sinclair/typebox";
import { type BodyRule, NO_BODY } from "../../http/body-rules.ts";
import type { Principal } from "../../http/deps.ts";
import { headers, json, type Operation, type Response } from "../../http/operation.ts";
import { type Call, KEY, type Outcome, type Route, route } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { Failure, type Row } from "../../std/failure.ts";
import { RUNS } from "../errors.ts";
import type { RunDeps } from "../gate.ts";
import { Name } from "./schemas.ts";

export const RUN = "/v1/robot/runs/:robot/:run";

const { upload_in_progress, run_completed, run_too_large, storage_quota_exceeded } = RUNS;

/** The failures of a request that stores something in a run. */
export const NO_ROOM = [upload_in_progress, run_completed, run_too_large, storage_quota_exceeded];

/** The parameters that its path names are added. A route that reads a body begins work; its kit adds what a body can fail with. */
interface Declared<Body> extends Pick<Route, "method" | "path" | "name">, Operation {
  readonly body: BodyRule<Body>;
  readonly failures: readonly Row[];
  readonly handle: (deps: RunDeps, call: Call<Principal, Body>) => Promise<Outcome>;
}

export type RunRoute = (deps: RunDeps) => Route;

/** A route with a key that counts the requests that it accepts. */
export function counted<Body>(declared: Declared<Body>): RunRoute {
  const { method, path, name, body, failures, handle, parameters = [], ...words } = declared;
  return (deps) =>
    route<Principal, Body>({
      ...{ method, path, name, body, key: KEY },
      ...(body.reads && { beginsWork: true }),
      failures: [...failures, RUNS.storage_busy, RUNS.storage_unavailable],
      operation: { ...words, parameters: [...parametersOf(path), ...parameters] },
      handle: async (call) => {
        const outcome = await handle(deps, call);
        const refused = outcome instanceof Failure || (typeof outcome === "object" && "failure" in outcome);
        if (!refused) deps.meter.request(call.principal.accountId);
        return outcome;
      },
    });
}

/** The same without a body. */
export function plain(declared: Omit<Declared<undefined>, "body">): RunRoute {
  return counted({ ...declared, body: NO_BODY });
}

function inPath(name: string, description: string, schema: TSchema) {
  return { name, in: "path" as const, required: true, description, schema };
}

const ROBOT_AND_RUN = [inPath("robot", "The robot's name.", Name), inPath("run", "The run's name.", Name)];

const PATH = inPath(
  "path",
  `The file's path: at most ${LIMITS.runPathBytesMax} bytes and ${LIMITS.runPathSegmentsMax} segments, none empty, \`.\` or \`..\`; each percent-encoded.`,
  Type.String({ minLength: 1 }),
);

function parametersOf(path: string) {
  return [...(path.includes(":run") ? ROBOT_AND_RUN : []), ...(path.endsWith("*") ? [PATH] : [])];
}

export function inQuery(name: string, required: boolean, description: string, schema: TSchema) {
  return { name, in: "query" as const, required, description, schema };
}

export function inHeader(name: string, description: string) {
  return { name, in: "header" as const, required: false, description, schema: Type.String() };
}

export const DIGESTS = [
  inHeader("Content-Digest", "RFC 9530: `sha-256=:BASE64:` of this body. With it a damaged body is refused."),
  inHeader("X-Content-Sha256", "The same in hexadecimal."),
];

export const BYTES = { "application/octet-stream": { schema: { type: "string", format: "binary" } } };

export function ok(description: string, schema: string, ...named: readonly string[]): Response {
  return { description, headers: headers(...named), content: json(schema) };
}

export function done(description: string): Operation["responses"] {
  return { "204": { description, headers: headers() } };
}
