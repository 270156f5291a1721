/** Multipart uploads: `POST` starts or finishes one, `GET` resumes, `PUT` sends a part, `DELETE` aborts. */
import type { BodyStream } from "../../http/body-stream.ts";
import type { Principal } from "../../http/deps.ts";
import { isObject, type JsonObject } from "../../http/json.ts";
import type { Call, Outcome } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { shownSeconds } from "../../std/seen-clock.ts";
import { invalid } from "../errors.ts";
import { finishUpload, type ListedPart } from "../finish.ts";
import { gated, type RunDeps } from "../gate.ts";
import type { FileKey, StoredUpload, UploadKey } from "../store/records.ts";
import { abortUpload, findUpload, putPart, startUpload, uploadsOf } from "../uploads.ts";
import { readHex } from "./digest.ts";
import { storedReply, takeBody } from "./files.ts";
import { about, query, queryNumber, readFileKey, removing } from "./target.ts";

type Keyed<Body> = Call<Principal, Body>;

const PARTS_MAX = Math.ceil(LIMITS.runBytesMax / LIMITS.runPartBytes);

/** The file of the request, and its upload if the query names one. */
function readKey(accountId: string, url: string): FileKey | UploadKey | Failure {
  const key = readFileKey(accountId, url);
  if (key instanceof Failure) return key;
  const uploadId = query(url, "upload_id");
  if (uploadId instanceof Failure) return uploadId;
  return uploadId === undefined ? key : { ...key, uploadId };
}

function readUploadKey(accountId: string, url: string): UploadKey | Failure {
  const key = readKey(accountId, url);
  if (key instanceof Failure || "uploadId" in key) return key;
  return invalid("upload_id is missing in the query; the answer that started the upload names it", "upload_id");
}

export async function postUpload(deps: RunDeps, call: Keyed<JsonObject>): Promise<Outcome> {
  const key = readKey(call.principal.accountId, call.request.url);
  if (key instanceof Failure) return key;
  return "uploadId" in key ? await finish(deps, key, call) : await start(deps, key, call.body);
}

async function start(deps: RunDeps, key: FileKey, { size, sha256 }: JsonObject): Promise<Outcome> {
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 1) {
    return invalid("size must be the number of bytes of the whole file, a whole number of at least 1", "size");
  }
  const digest = readHex(sha256);
  if (sha256 != null && digest === undefined) return invalid("sha256 is not 64 hexadecimal digits", "sha256");
  const started = await gated(deps, key, () => startUpload(deps, key, size, digest));
  if (started instanceof Failure) return started;
  const { uploadId, partSize, parts, expiresAt } = started;
  const body = { upload_id: uploadId, part_size: partSize, parts, expires_at: expiresAt };
  return { status: 201, body: JSON.stringify(body) };
}

async function finish(deps: RunDeps, key: UploadKey, { body, request, server }: Keyed<JsonObject>): Promise<Outcome> {
  const parts = readParts(body.parts);
  if (parts instanceof Failure) return parts;
  // Nothing is sent while two gigabytes are read back.
  server?.timeout(request, 0);
  const stored = await gated(deps, key, () => finishUpload(deps, key, parts));
  server?.timeout(request, LIMITS.connectionIdleSeconds);
  return stored instanceof Failure ? stored : storedReply(200, stored);
}

function readParts(value: unknown): readonly ListedPart[] | Failure {
  if (value == null) return [];
  if (!Array.isArray(value)) return invalid("parts must be a list of {part, sha256}", "parts");
  const parts: ListedPart[] = [];
  const seen = new Set<number>();
  for (const [index, item] of value.entries()) {
    const at = `parts[${index}]`;
    const { part, sha256 } = isObject(item) ? item : {};
    if (typeof part !== "number" || !Number.isInteger(part) || part < 1 || part > PARTS_MAX) {
      return invalid(`${at}.part must be the number of a part, from 1`, `${at}.part`);
    }
    if (seen.has(part)) return invalid(`part ${part} is listed twice`, `${at}.part`);
    seen.add(part);
    const digest = readHex(sha256);
    if (!digest) return invalid(`${at}.sha256 is not 64 hexadecimal digits`, `${at}.sha256`);
    parts.push({ part, sha256: digest });
  }
  return parts;
}

function facts({ clock }: RunDeps, { id, size, partSize, expiresAt }: StoredUpload) {
  return { upload_id: id, size, part_size: partSize, expires_at: shownSeconds(clock, expiresAt) };
}

/** The parts that have come; without `upload_id` the unfinished uploads of the path. */
export const getUpload = about(readKey, async (deps, key) => {
  if ("uploadId" in key) {
    const found = await findUpload(deps, key);
    if (found instanceof Failure) return found;
    const received = found.parts.map(({ part, size, sha256 }) => ({ part, size, sha256: sha256.toHex() }));
    return { status: 200, body: JSON.stringify({ ...facts(deps, found.upload), received }) };
  }
  const found = await uploadsOf(deps, key);
  if (found instanceof Failure) return found;
  return { status: 200, body: JSON.stringify({ data: found.map((one) => facts(deps, one)) }) };
});

export const deleteUpload = removing(readUploadKey, abortUpload);

interface PartKey extends UploadKey {
  readonly part: number;
}

function readPartKey(accountId: string, url: string): PartKey | Failure {
  const key = readUploadKey(accountId, url);
  if (key instanceof Failure) return key;
  const part = queryNumber(url, "part", 1, PARTS_MAX);
  if (part instanceof Failure) return part;
  if (part === undefined) return invalid("part is missing in the query; parts are numbered from 1", "part");
  return { ...key, part };
}

export async function putUpload(deps: RunDeps, call: Keyed<BodyStream>): Promise<Outcome> {
  return await takeBody(deps, call, readPartKey, async ({ part, ...key }, sent) => {
    const sha256 = await putPart(deps, key, part, sent);
    if (sha256 instanceof Failure) return sha256;
    return { status: 200, body: JSON.stringify({ part, size: sent.size, sha256: sha256.toHex() }) };
  });
}
