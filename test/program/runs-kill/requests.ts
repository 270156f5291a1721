/** Requests to run storage as a client in any language sends them, and what came back. */
import { connect } from "node:net";
import type { Target } from "../payers.ts";
import { sha256Of } from "./content.ts";

export interface Reply {
  /** 0: the connection broke before the answer was whole. */
  readonly status: number;
  /** The code of an error. */
  readonly code: string | undefined;
  readonly bytes: Uint8Array;
  readonly etag: string | null;
}

export interface RunName {
  readonly robot: string;
  readonly run: string;
}

const BROKEN: Reply = { status: 0, code: undefined, bytes: new Uint8Array(), etag: null };

export function pathOf({ robot, run }: RunName, rest = ""): string {
  return `/v1/robot/runs/${robot}/${run}${rest}`;
}

interface Request {
  readonly method?: string;
  readonly json?: unknown;
  readonly bytes?: Uint8Array;
  /** Replaces the digest of the bytes. */
  readonly sha256?: string;
}

export async function ask({ url, key }: Target, path: string, request: Request = {}): Promise<Reply> {
  const { method = "GET", json, bytes, sha256 } = request;
  const headers: Record<string, string> = { authorization: `Bearer ${key}` };
  if (json !== undefined) headers["content-type"] = "application/json";
  if (bytes) headers["x-content-sha256"] = sha256 ?? sha256Of(bytes);
  const body = bytes ?? (json === undefined ? undefined : JSON.stringify(json));
  try {
    const response = await fetch(`${url.replace(/\/$/, "")}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: body as string }),
    });
    const answered = await response.bytes();
    const length = response.headers.get("content-length");
    if (length !== null && Number(length) !== answered.length) return BROKEN;
    const { status } = response;
    return {
      status,
      bytes: answered,
      code: status < 400 ? undefined : jsonOf<{ error: { code: string } }>(answered).error.code,
      etag: response.headers.get("etag"),
    };
  } catch {
    return BROKEN;
  }
}

export function jsonOf<T>(bytes: Uint8Array): T {
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

/** A body that breaks off in its middle, with the client's connection. */
export async function sendHalf({ url, key }: Target, path: string, bytes: Uint8Array): Promise<void> {
  const { hostname, port } = new URL(url);
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect(Number(port), hostname, () => {
    const head = [`PUT ${path} HTTP/1.1`, `Host: ${hostname}`, `Authorization: Bearer ${key}`];
    socket.write(`${[...head, `Content-Length: ${bytes.length}`].join("\r\n")}\r\n\r\n`);
    socket.write(bytes.subarray(0, bytes.length >> 1), () => socket.destroy());
  });
  socket.on("error", () => resolve());
  socket.on("close", () => resolve());
  await promise;
}
