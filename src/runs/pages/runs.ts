/** `/account/runs`: the list of an account's runs, one run with its player and files, and deleting. By cookie, never by key. */

import { PageRefusal, unavailable } from "../../account/errors.ts";
import {
  elsewhere,
  type FormVisit,
  formPerson,
  message,
  person,
  shown,
  type Visit,
  viewer,
} from "../../account/pages/page.ts";
import type { People } from "../../account/people.ts";
import type { Reply } from "../../http/reply.ts";
import type { Outcome } from "../../http/route.ts";
import { Failure } from "../../std/failure.ts";
import { readPath } from "../http/target.ts";
import { RUNS_ADDRESS, type RunName, runAddress } from "../views/address.ts";
import { type RunRow, runsPage } from "../views/list.ts";
import { PLAYER_POLICY, type RunFile, runPage } from "../views/run.ts";

/** A run of an account. */
export interface AccountRun extends RunName {
  readonly accountId: string;
}

/** What the pages need of the storage of runs. */
export interface RunsForPages {
  /** Completed runs, newest first, from after the one that `after` names. */
  list(query: {
    readonly accountId: string;
    readonly robot?: string;
    readonly limit: number;
    readonly after?: string;
  }): Promise<{ readonly data: readonly RunRow[]; readonly next?: string | undefined } | Failure>;
  /** The manifest of a completed run, as its route answers it. */
  manifest(run: AccountRun): Promise<string | Failure>;
  remove(run: AccountRun): Promise<undefined | Failure>;
  usage(accountId: string): Promise<Usage | Failure>;
  /** The whole answer of a download: ranges, conditions, digests. */
  file(run: AccountRun, path: string, request: Request): Promise<Outcome>;
}

interface Usage {
  readonly storedBytes: number;
  readonly reservedBytes: number;
  readonly quotaBytes: number;
}

/** What the pages of runs work with. */
export interface RunPagesDeps {
  readonly people: People;
  readonly runs: RunsForPages;
}

const PAGE_RUNS = 50;

export async function showRuns(from: Visit<RunPagesDeps>): Promise<Reply> {
  const { searchParams: query, search } = new URL(from.request.url);
  const who = await person(from, RUNS_ADDRESS + search);
  if (!("token" in who)) return who;
  const { accountId } = who;
  const robot = (query.get("robot") ?? "").trim();
  const after = query.get("after") ?? undefined;
  const [listed, usage] = await Promise.all([
    from.deps.runs.list({
      accountId,
      limit: PAGE_RUNS,
      ...(robot === "" ? {} : { robot }),
      ...(after === undefined ? {} : { after }),
    }),
    from.deps.runs.usage(accountId),
  ]);
  // A robot that cannot be has no runs; an old link to a page further on leads nowhere.
  const refused = listed instanceof Failure ? refusalOf(listed) : undefined;
  if (refused?.kind === "unavailable") return message("Sorry", refused);
  const html = runsPage({
    viewer: viewer(who),
    notice: query.get("done") === "deleted" ? "The run is deleted." : undefined,
    problem: refused?.text,
    usage: usage instanceof Failure ? undefined : usage,
    runs: listed instanceof Failure ? [] : listed.data,
    robot,
    later: after !== undefined,
    next: listed instanceof Failure ? undefined : listed.next,
  });
  return shown(html, listed instanceof Failure ? listed.status : 200);
}

export async function showRun(from: Visit<RunPagesDeps>): Promise<Reply> {
  const found = await manifestOf(from);
  if (!("manifest" in found)) return found;
  const { robot, run, who, manifest } = found;
  const { completed_at: completedAt, size, files } = JSON.parse(manifest) as Manifest;
  const html = runPage({
    viewer: viewer(who),
    robot,
    run,
    completedAt,
    size,
    files: files.map(({ content_type: contentType, ...file }) => ({ ...file, contentType })),
  });
  return shown(html, 200, { "content-security-policy": PLAYER_POLICY });
}

interface Manifest {
  readonly completed_at: number;
  readonly size: number;
  readonly files: readonly (Omit<RunFile, "contentType"> & { readonly content_type: string })[];
}

export async function showManifest(from: Visit<RunPagesDeps>): Promise<Reply> {
  const found = await manifestOf(from);
  if (!("manifest" in found)) return found;
  return { status: 200, body: found.manifest, headers: { ...FILE_HEADERS, "content-type": "application/json" } };
}

async function manifestOf(from: Visit<RunPagesDeps>) {
  const name = nameOf(from);
  const who = await person(from, runAddress(name));
  if (!("token" in who)) return who;
  const manifest = await from.deps.runs.manifest({ accountId: who.accountId, ...name });
  if (manifest instanceof Failure) return message("No such run", refusalOf(manifest));
  return { ...name, who, manifest };
}

/** An uploaded file is a stranger's: where a browser opens it as a page it can do nothing, and mostly it is saved instead. */
const FILE_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'",
  "cross-origin-resource-policy": "same-origin",
  // The files of a run do not change, but a run may be deleted, and another one take its name.
  "cache-control": "private, max-age=300",
  // Another person's sign-in in the same browser does not get it.
  vary: "cookie",
} as const;

/** Types that a browser may show. Not SVG: it is a document with scripts. */
const SHOWN_TYPES = /^(image\/(avif|gif|jpeg|png|webp)|video\/[\w.+-]+|application\/json)\s*(;|$)/i;

export async function sendFile(from: Visit<RunPagesDeps>): Promise<Outcome> {
  const name = nameOf(from);
  const who = await person(from, runAddress(name));
  if (!("token" in who)) return who;
  // As it was sent: the router decodes names, not the rest of a path.
  const path = readPath((from.params["*"] ?? "").split("/"));
  if (path instanceof Failure) return message("No such file", NO_FILE);
  const outcome = await from.deps.runs.file({ accountId: who.accountId, ...name }, path, from.request);
  if (outcome instanceof Failure) return message("No such file", outcome.status === 404 ? NO_FILE : refusalOf(outcome));
  if (typeof outcome === "string" || "failure" in outcome) return outcome;
  const { "content-type": type = "", "content-disposition": named = "attachment" } = outcome.headers ?? {};
  const disposition = SHOWN_TYPES.test(type) ? "inline" : named;
  return { ...outcome, headers: { ...outcome.headers, ...FILE_HEADERS, "content-disposition": disposition } };
}

const NO_FILE = new PageRefusal("The run has no such file.", "notFound");

export async function deleteRun(from: FormVisit<RunPagesDeps>): Promise<Reply> {
  const who = await formPerson(from, RUNS_ADDRESS);
  if (!("token" in who)) return who;
  const { accountId } = who;
  const gone = await from.deps.runs.remove({ accountId, robot: from.form("robot"), run: from.form("run") });
  if (gone instanceof Failure) return message("Not deleted", refusalOf(gone));
  return elsewhere(`${RUNS_ADDRESS}?done=deleted`);
}

/** A name that is not UTF-8 is no run's. */
function nameOf({ params: { robot, run } }: Visit<RunPagesDeps>): RunName {
  return { robot: robot ?? "", run: run ?? "" };
}

function refusalOf({ status, message, retryAfterSeconds }: Failure): PageRefusal {
  if (status === 404) return new PageRefusal("The account has no such run. It may have been deleted.", "notFound");
  if (status < 500) return new PageRefusal(sentence(message));
  const { text } = unavailable();
  return new PageRefusal(text, "unavailable", retryAfterSeconds);
}

/** Failures of the API begin small and end without a full stop. */
function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
