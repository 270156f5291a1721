/** The files of a run in one request: `PUT`, `DELETE` (`GET` is download.ts). */

import type { BodyStream } from "../../http/body-stream.ts";
import type { Principal } from "../../http/deps.ts";
import type { Call, Outcome } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import type { RunDeps } from "../deps.ts";
import { gated } from "../gate.ts";
import { putFile } from "../put.ts";
import { removeFile } from "../remove.ts";
import { announced, partialBody, pourFrom } from "./body.ts";
import { readDigest } from "./digest.ts";
import { download, etagOf } from "./download.ts";
import { readFileKey } from "./target.ts";

/** The size is looked at first, as on every route. */
export async function putOne(deps: RunDeps, call: Call<Principal, BodyStream>): Promise<Outcome> {
  const { request, principal, body, server } = call;
  const size = announced(request);
  if (size instanceof Failure) return size;
  const key = readFileKey(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  const partial = partialBody(request);
  if (partial) return partial;
  const sha256 = readDigest(request.headers);
  if (sha256 instanceof Failure) return sha256;
  server?.timeout(request, LIMITS.runConnectionIdleSeconds);
  const stored = await gated(deps, key, () => putFile(deps, { ...key, size, sha256, pour: pourFrom(body) }), "body");
  server?.timeout(request, LIMITS.connectionIdleSeconds);
  if (stored instanceof Failure) return stored;
  return {
    status: stored.replaced ? 200 : 201,
    body: JSON.stringify({ path: stored.path, size: stored.size, sha256: stored.sha256.toHex() }),
    headers: { etag: etagOf(stored.sha256) },
  };
}

export async function getOne(deps: RunDeps, { request, principal }: Call<Principal, undefined>): Promise<Outcome> {
  const key = readFileKey(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  return await gated(deps, key, (keep) => download(deps, key, request, keep));
}

export async function deleteOne(deps: RunDeps, { request, principal }: Call<Principal, undefined>): Promise<Outcome> {
  const key = readFileKey(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  return (await gated(deps, key, () => removeFile(deps, key))) ?? { status: 204, body: null };
}
