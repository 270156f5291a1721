/** What a handler answers. */
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import type { FileSlice, Source } from "./download.ts";
import type { Events } from "./sse.ts";

export interface Reply {
  readonly status: number;
  /** Text is JSON unless `headers` say otherwise. */
  readonly body: string | Uint8Array<ArrayBuffer> | null | FileSlice | Source | Events;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** No charge pays for it: it counts against the account's budget of such work. */
  readonly unpaid?: true;
}

/** A failure whose answer has headers of its route. */
export interface FailedReply {
  readonly failure: Failure;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

export function failedWith(failure: Failure, headers: FailedReply["headers"]): FailedReply {
  return { failure, headers };
}

/** A route that does not exist, or not with this method. */
export function notFound(): Failure {
  return new Failure(EVERY.not_found, "there is no such route, or not with this method; see the API's documentation");
}
