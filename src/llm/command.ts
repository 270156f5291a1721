/** What a request for a response becomes after its checks, and what it ends in. */
import type { Failure } from "../std/failure.ts";
import type { EventFlow } from "./output/flow.ts";
import type { LlmRequest } from "./request.ts";

export interface RespondCommand {
  readonly request: LlmRequest;
  /** SHA-256 of the canonical body, 32 bytes. */
  readonly digest: Uint8Array;
  readonly accountId: string;
  readonly requestId: string;
  /** The `Idempotency-Key`, or one that the service made. */
  readonly key: string;
}

/** A response object as JSON, as it is kept. */
export interface ResponseText {
  readonly object: string;
  /** An earlier request with this key has made it. */
  readonly replayed: boolean;
}

/** Events; the first of them are there. */
export interface ResponseStream {
  readonly flow: EventFlow;
  readonly id: string;
  readonly replayed: boolean;
}

export type ResponseOutcome = ResponseText | ResponseStream | Failure;
