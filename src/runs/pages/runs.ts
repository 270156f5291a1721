/** `/account/runs`: an account's runs, one run with its player and files, and deletion. People sign in by cookie, never by key. */
import { PageRefusal, unavailable } from "../../account/errors.ts";
import {
  elsewhere,
  type FormVisit,
  formPerson,
  message,
  pageRoutes,
  person,
  shown,
  type Visit,
  viewer,
} from "../../account/pages/page.ts";
import type { People } from "../../account/people.ts";
import type { Outcome, Reply } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { Failure } from "../../std/failure.ts";
import { randomBase62 } from "../../std/ids.ts";
import { nameProblem, type RunName } from "../../std/run-names.ts";
import { fileNotFound, runGone, runNotFound } from "../errors.ts";
import { gated, ofAccount, type RunDeps } from "../gate.ts";
import { download } from "../http/download.ts";
import { cursorText, readCursor } from "../http/runs.ts";
import { readFileKey, readRun } from "../http/target.ts";
import { listRuns, manifestOf, type Page, removeRun, usageOf } from "../runs.ts";
import type { RunKey } from "../store/records.ts";
import { RUNS_ADDRESS, runAddress } from "../views/address.ts";
import { runsPage } from "../views/list.ts";
import { type Manifest, PLAYER_ADDRESS, PLAYER_SCRIPT, playerPolicy, runPage } from "../views/run.ts";

interface RunPagesDeps {
  readonly people: People;
  readonly runs: RunDeps;
}

export function runPages(deps: RunPagesDeps): Surface {
  const { get, head, post, surface } = pageRoutes(deps);
  return surface([
    get(RUNS_ADDRESS, showRuns),
    post(`${RUNS_ADDRESS}/delete`, deleteRun),
    get(`${RUNS_ADDRESS}/:robot/:run`, showRun),
    get(`${RUNS_ADDRESS}/:robot/:run/manifest.json`, showManifest),
    get(`${RUNS_ADDRESS}/:robot/:run/files/*`, sendFile),
    head(`${RUNS_ADDRESS}/:robot/:run/files/*`, sendFile),
    get(PLAYER_ADDRESS, sendPlayer),
  ]);
}

/** The script is no secret: it needs no sign-in. */
async function sendPlayer(): Promise<Reply> {
  return {
    status: 200,
    body: PLAYER_SCRIPT,
    headers: {
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
    },
  };
}

const PAGE_RUNS = 50;

async function showRuns(from: Visit<RunPagesDeps>): Promise<Reply> {
  const { searchParams: query, search } = new URL(from.request.url);
  const who = await person(from, RUNS_ADDRESS + search);
  if (!("token" in who)) return who;
  const key = ofAccount(who.accountId);
  const { runs: deps } = from.deps;
  const robot = (query.get("robot") ?? "").trim();
  const after = query.get("after") ?? undefined;
  const [page, usage] = await Promise.all([
    listed(deps, key, robot, after),
    gated(deps, key, () => usageOf(deps, who.accountId)),
  ]);
  // A link to a later page may be wrong.
  const refused = page instanceof Failure ? refusalOf(page) : undefined;
  if (refused?.kind === "unavailable") return message("Sorry", refused);
  const { runs, next } = page instanceof Failure ? { runs: [], next: undefined } : page;
  const html = runsPage({
    viewer: viewer(who),
    notice: query.get("done") === "deleted" ? "The run is deleted." : undefined,
    problem: refused?.text,
    usage: usage instanceof Failure ? undefined : { ...usage, quota: deps.bounds.accountBytesMax },
    runs,
    robot,
    later: after !== undefined,
    next: next && cursorText(next),
  });
  return shown(html, page instanceof Failure ? page.status : 200);
}

async function listed(deps: RunDeps, key: RunKey, robot: string, from: string | undefined): Promise<Page | Failure> {
  const after = readCursor(from);
  if (after instanceof Failure) return after;
  if (robot !== "" && nameProblem(robot) !== undefined) return { runs: [], next: undefined };
  const listing = { accountId: key.accountId, robot: robot || undefined, limit: PAGE_RUNS, after };
  return await gated(deps, key, () => listRuns(deps, listing));
}

/** 22 base62 characters hold 128 bits. */
const NONCE_CHARS = 22;

async function showRun(from: Visit<RunPagesDeps>): Promise<Reply> {
  const found = await manifestFor(from);
  if (!("manifest" in found)) return found;
  const nonce = randomBase62(NONCE_CHARS);
  const html = runPage(viewer(found.who), JSON.parse(found.manifest) as Manifest, nonce);
  return shown(html, 200, { "content-security-policy": playerPolicy(nonce) });
}

async function showManifest(from: Visit<RunPagesDeps>): Promise<Reply> {
  const found = await manifestFor(from);
  if (!("manifest" in found)) return found;
  return { status: 200, body: found.manifest, headers: { ...FILE_HEADERS, "content-type": "application/json" } };
}

async function manifestFor(from: Visit<RunPagesDeps>) {
  const asked = await asking(from, readRun);
  if (!("who" in asked)) return asked;
  const { who, key } = asked;
  const { runs } = from.deps;
  const manifest = key ? await gated(runs, key, () => manifestOf(runs, key)) : runNotFound();
  if (manifest instanceof Failure) return message("No such run", refusalOf(manifest));
  return { who, manifest };
}

/** The person who asks, and what the address names; undefined if nothing can have such names. */
async function asking<Key extends RunKey>(
  from: Visit<RunPagesDeps>,
  read: (accountId: string, url: string) => Key | Failure,
) {
  // The router decodes names, not the rest of a path, and nothing of a HEAD.
  const named = read("", from.request.url);
  const key = named instanceof Failure ? undefined : named;
  const who = await person(from, key ? runAddress(key) : RUNS_ADDRESS);
  return "token" in who ? { who, key: key && { ...key, accountId: who.accountId } } : who;
}

/** An uploaded file may be hostile: a browser that opens it as a page gives it no rights, and mostly saves it instead. */
const FILE_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'",
  "cross-origin-resource-policy": "same-origin",
  // The files of a run do not change, but another run may take its name after its deletion.
  "cache-control": "private, max-age=300",
  // Another person may sign in with the same browser.
  vary: "cookie",
} as const;

/** The types that a browser may show. SVG is a document with scripts. */
const SHOWN_TYPES = /^(image\/(avif|gif|jpeg|png|webp)|video\/[\w.+-]+|application\/json)\s*(;|$)/i;

async function sendFile(from: Visit<RunPagesDeps>): Promise<Outcome> {
  const asked = await asking(from, readFileKey);
  if (!("who" in asked)) return asked;
  const { key } = asked;
  const { request } = from;
  const { runs } = from.deps;
  const kind = request.method === "HEAD" ? "requests" : "downloads";
  const outcome = key ? await gated(runs, key, (keep) => download(runs, key, request, keep), kind) : fileNotFound();
  if (outcome instanceof Failure) return message("No such file", outcome.status === 404 ? NO_FILE : refusalOf(outcome));
  if (typeof outcome === "string" || "failure" in outcome) return outcome;
  const { "content-type": type = "", "content-disposition": named = "attachment" } = outcome.headers ?? {};
  const disposition = SHOWN_TYPES.test(type) ? "inline" : named;
  return { ...outcome, headers: { ...outcome.headers, ...FILE_HEADERS, "content-disposition": disposition } };
}

const NO_FILE = new PageRefusal("The run has no such file.", "notFound");

async function deleteRun(from: FormVisit<RunPagesDeps>): Promise<Reply> {
  const who = await formPerson(from, RUNS_ADDRESS);
  if (!("token" in who)) return who;
  const key = keyOf(who.accountId, { robot: from.form("robot"), run: from.form("run") });
  const { runs } = from.deps;
  const gone = key ? await gated(runs, key, () => removeRun(runs, key)) : runGone();
  if (gone instanceof Failure) return message("Not deleted", refusalOf(gone));
  return elsewhere(`${RUNS_ADDRESS}?done=deleted`);
}

/** Undefined if no run has such names. They are not queried: no database takes every text. */
function keyOf(accountId: string, { robot, run }: RunName): RunKey | undefined {
  const possible = nameProblem(robot) === undefined && nameProblem(run) === undefined;
  return possible ? { accountId, robot, run } : undefined;
}

function refusalOf({ status, message, retryAfterSeconds }: Failure): PageRefusal {
  if (status === 404) return new PageRefusal("The account has no such run. It may have been deleted.", "notFound");
  if (status < 500) return new PageRefusal(sentence(message));
  const { text } = unavailable();
  return new PageRefusal(text, "unavailable", retryAfterSeconds);
}

/** Messages of the API begin with a small letter and end without a full stop. */
function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
