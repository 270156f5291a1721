/** The answer to a request for a file: the whole, a range, or that the client has it already. */
import { type Source, sourceOfFile } from "../../http/download.ts";
import type { Outcome, Reply } from "../../http/route.ts";
import { Failure } from "../../std/failure.ts";
import { type BlobBody, BlobsDown } from "../blob/blobs.ts";
import { RUNS } from "../errors.ts";
import type { Keep, RunDeps } from "../gate.ts";
import { contentType } from "../media-type.ts";
import { fileOf, openFile } from "../runs.ts";
import type { FileKey, StoredFile } from "../store/records.ts";
import { digestField } from "./digest.ts";
import { isFresh, mayBePart, type Range, readRange } from "./range.ts";

export function etagOf(sha256: Uint8Array): string {
  return `"sha256-${sha256.toHex()}"`;
}

/** Answers `GET` and `HEAD`. `keep` keeps the permit of the request while its bytes pass through this process. */
export async function download(
  deps: RunDeps,
  key: FileKey,
  { method, headers }: Request,
  keep: Keep,
): Promise<Outcome> {
  const file = await fileOf(deps, key);
  if (file instanceof Failure) return file;
  const { size, sha256, storedAt } = file;
  const etag = etagOf(sha256);
  const about = {
    etag,
    "last-modified": new Date(storedAt * 1000).toUTCString(),
    "accept-ranges": "bytes",
    "cache-control": "private, no-cache",
  };
  if (isFresh(headers, etag, storedAt)) return { status: 304, body: null, headers: about };
  const found = { ...about, ...described(key.path, sha256) };
  if (method === "HEAD") return { status: 200, body: null, headers: { ...found, "content-length": String(size) } };
  const range = mayBePart(headers, etag) ? readRange(headers.get("range"), size) : "whole";
  if (range === "unsatisfiable") {
    const message = `none of the bytes of Range are there: the file has ${size} bytes`;
    return {
      failure: new Failure(RUNS.invalid_range, message),
      headers: { ...about, "content-range": `bytes */${size}` },
    };
  }
  if (range === "whole") {
    const whole = await send(deps, key, file, { from: 0, to: size }, { status: 200, headers: found }, keep);
    if (whole instanceof Failure || !headers.has("range")) return whole;
    const { body } = whole;
    if (body === null || typeof body !== "object" || !("path" in body)) return whole;
    // For an answer that is a whole file Bun reads `Range` by itself, and accepts malformed ones.
    const source = sourceOfFile(body);
    const leave = keep();
    return { ...whole, body: { pull: source.pull, close: () => source.close().finally(leave) } };
  }
  const part = { "content-range": `bytes ${range.from}-${range.to - 1}/${size}` };
  return await send(deps, key, file, range, { status: 206, headers: { ...found, ...part } }, keep);
}

/** The headers that describe the file to browsers and tools. */
function described(path: string, sha256: Uint8Array): Record<string, string> {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const ascii = name.replace(/[^ !#-[\]-~]/g, "_");
  return {
    "content-type": contentType(path),
    "content-disposition": `attachment; filename="${ascii}"; filename*=UTF-8''${encodeRfc8187(name)}`,
    "repr-digest": digestField(sha256),
    "x-content-type-options": "nosniff",
  };
}

function encodeRfc8187(text: string): string {
  return encodeURIComponent(text).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

async function send(
  deps: RunDeps,
  key: FileKey,
  file: StoredFile,
  { from, to }: Range,
  { status, headers }: Required<Pick<Reply, "status" | "headers">>,
  keep: Keep,
): Promise<Reply | Failure> {
  if (to === from) return { status, body: new Uint8Array(), headers };
  const body = await openFile(deps, key, file, from, to);
  if (body instanceof Failure) return body;
  deps.meter.download(key.accountId, to - from);
  return { status, headers, body: "path" in body ? { path: body.path, from, to } : sourceOf(body, keep()) };
}

/** Bytes of another server. If they fail, the connection breaks, so that the client sees that some are missing. */
function sourceOf(body: Extract<BlobBody, { pull: unknown }>, leave: () => void): Source {
  return {
    pull: async () => {
      const piece = await body.pull();
      if (piece instanceof BlobsDown) throw new Error(`the bytes of a file broke off: ${piece.reason}`);
      return piece;
    },
    close: async () => {
      leave();
      body.close();
    },
  };
}
