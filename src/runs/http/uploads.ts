/** Multipart uploads: `POST` starts or finishes one, `GET` resumes, `PUT` sends a part, `DELETE` aborts. */

import type { BodyStream } from "../../http/body-stream.ts";
import type { Principal } from "../../http/deps.ts";
import { isObject, type JsonObject } from "../../http/json.ts";
import type { Call, Outcome } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { shownSeconds } from "../../std/seen-clock.ts";
import type { RunDeps } from "../deps.ts";
import { RUNS } from "../errors.ts";
import { finishUpload, type ListedPart } from "../finish.ts";
import { gated } from "../gate.ts";
import type { FileKey, StoredUpload } from "../store/records.ts";
import { abortUpload, findUpload, putPart, startUpload, type UploadKey, uploadsOf } from "../uploads.ts";
import { announced, partialBody, pourFrom } from "./body.ts";
import { readDigest, readHex } from "./digest.ts";
import { etagOf } from "./download.ts";
import { query, queryNumber, readFileKey } from "./target.ts";

type Keyed<Body> = Call<Principal, Body>;

const PARTS_MAX = Math.ceil(LIMITS.runBytesMax / LIMITS.runPartBytes);

function invalid(message: string, param?: string): Failure {
  return new Failure(RUNS.invalid_request, message, param === undefined ? {} : { param });
}

/** With `upload_id` in the query, which all but the start need. */
function readUpload({ request, principal }: Keyed<unknown>): FileKey | UploadKey | Failure {
  const key = readFileKey(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  const uploadId = query(request.url, "upload_id");
  if (uploadId instanceof Failure) return uploadId;
  return uploadId === undefined ? key : { ...key, uploadId };
}

function named(key: FileKey | UploadKey): UploadKey | Failure {
  if ("uploadId" in key) return key;
  return invalid("upload_id is missing in the query; the answer that started the upload names it", "upload_id");
}

export async function postUpload(deps: RunDeps, call: Keyed<JsonObject>): Promise<Outcome> {
  const key = readUpload(call);
  if (key instanceof Failure) return key;
  return "uploadId" in key ? await finish(deps, key, call) : await start(deps, key, call.body);
}

async function start(deps: RunDeps, key: FileKey, { size, sha256 }: JsonObject): Promise<Outcome> {
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 1) {
    return invalid("size must be the number of bytes of the whole file, a whole number of at least 1", "size");
  }
  const digest = typeof sha256 === "string" ? readHex(sha256) : undefined;
  if (sha256 != null && digest === undefined) return invalid("sha256 is not 64 hexadecimal digits", "sha256");
  const started = await gated(deps, key, () => startUpload(deps, { ...key, size, sha256: digest }));
  if (started instanceof Failure) return started;
  const { uploadId, partSize, parts, expiresAt } = started;
  return {
    status: 201,
    body: JSON.stringify({ upload_id: uploadId, part_size: partSize, parts, expires_at: expiresAt }),
  };
}

async function finish(deps: RunDeps, key: UploadKey, { body, request, server }: Keyed<JsonObject>): Promise<Outcome> {
  const parts = readParts(body.parts);
  if (parts instanceof Failure) return parts;
  // Two gigabytes are read back; nothing is sent meanwhile.
  server?.timeout(request, 0);
  const stored = await gated(deps, key, () => finishUpload(deps, key, parts));
  server?.timeout(request, LIMITS.connectionIdleSeconds);
  if (stored instanceof Failure) return stored;
  const { path, size, sha256 } = stored;
  return {
    status: 200,
    body: JSON.stringify({ path, size, sha256: sha256.toHex() }),
    headers: { etag: etagOf(sha256) },
  };
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
    const digest = typeof sha256 === "string" ? readHex(sha256) : undefined;
    if (!digest) return invalid(`${at}.sha256 is not 64 hexadecimal digits`, `${at}.sha256`);
    parts.push({ part, sha256: digest });
  }
  return parts;
}

function facts({ clock }: RunDeps, { id, size, partSize, expiresAt }: StoredUpload) {
  return { upload_id: id, size, part_size: partSize, expires_at: shownSeconds(clock, expiresAt) };
}

/** Without `upload_id`: the unfinished uploads of the path. */
export async function getUpload(deps: RunDeps, call: Keyed<undefined>): Promise<Outcome> {
  const key = readUpload(call);
  if (key instanceof Failure) return key;
  return await gated(deps, key, async () => {
    if (!("uploadId" in key)) {
      const found = await uploadsOf(deps, key);
      return found instanceof Failure
        ? found
        : { status: 200, body: JSON.stringify({ data: found.map((one) => facts(deps, one)) }) };
    }
    const found = await findUpload(deps, key);
    if (found instanceof Failure) return found;
    const received = found.parts.map(({ part, size, sha256 }) => ({ part, size, sha256: sha256.toHex() }));
    return { status: 200, body: JSON.stringify({ ...facts(deps, found.upload), received }) };
  });
}

export async function putUpload(deps: RunDeps, call: Keyed<BodyStream>): Promise<Outcome> {
  const { request, body, server } = call;
  const size = announced(request);
  if (size instanceof Failure) return size;
  const read = readUpload(call);
  const key = read instanceof Failure ? read : named(read);
  if (key instanceof Failure) return key;
  const part = queryNumber(request.url, "part", 1, PARTS_MAX);
  if (part instanceof Failure) return part;
  if (part === undefined) return invalid("part is missing in the query; parts are numbered from 1", "part");
  const partial = partialBody(request);
  if (partial) return partial;
  const sha256 = readDigest(request.headers);
  if (sha256 instanceof Failure) return sha256;
  server?.timeout(request, LIMITS.runConnectionIdleSeconds);
  const stored = await gated(
    deps,
    key,
    () => putPart(deps, { ...key, part, size, sha256, pour: pourFrom(body) }),
    "body",
  );
  server?.timeout(request, LIMITS.connectionIdleSeconds);
  if (stored instanceof Failure) return stored;
  return { status: 200, body: JSON.stringify({ part, size, sha256: stored.toHex() }) };
}

export async function deleteUpload(deps: RunDeps, call: Keyed<undefined>): Promise<Outcome> {
  const read = readUpload(call);
  const key = read instanceof Failure ? read : named(read);
  if (key instanceof Failure) return key;
  return (await gated(deps, key, () => abortUpload(deps, key))) ?? { status: 204, body: null };
}
