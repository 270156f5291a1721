/** What the store keeps of responses of language models: one row each, from submission on. */
import type { HoldOutcome, NewCharge, Rates, Settlement } from "../../charge/store/records.ts";

/**
 * - `queued`: a background job that nobody has taken, or that waits to be taken again.
 * - `running`: taken by its owner, who may have called the provider.
 * - `done`: `object` is the answer; a failed background job is an answer as well.
 * - `ended`: there is no answer, and there will be none.
 */
type ResponseState = "queued" | "running" | "done" | "ended";

export interface ResponseKey {
  readonly id: string;
  readonly accountId: string;
}

/** A response as it is submitted. Its charge has the same id. */
export interface NewResponse extends ResponseKey {
  /** The public id of the model. */
  readonly model: string;
  /** The `Idempotency-Key`; one that the service made, where the client sent none. */
  readonly key: string;
  /** SHA-256 of the canonical request, 32 bytes. */
  readonly digest: Uint8Array;
  /** The response object as JSON; undefined where nobody knows the id before the answer. */
  readonly object: string | undefined;
  /** `store: false`: its key returns it for a day, and no `GET` does. */
  readonly hidden: boolean;
  readonly createdAt: number;
}

export interface StoredResponse extends ResponseKey {
  readonly digest: Uint8Array;
  readonly state: ResponseState;
  readonly owner: string | undefined;
  readonly object: string | undefined;
}

/** A live response: its owner runs it at once. */
export interface Submission {
  readonly charge: NewCharge;
  readonly response: NewResponse;
  readonly owner: string;
}

/** A background job. */
export interface Enqueuing {
  readonly charge: NewCharge;
  /** Seen time. */
  readonly at: number;
  readonly response: NewResponse;
  /** What is sent to the provider, as JSON; kept until the job has ended. */
  readonly request: string;
  /** Jobs that have not ended: of the account, and of all. */
  readonly accountMax: number;
  readonly allMax: number;
}

/** The key's earlier response. */
export interface Known {
  readonly is: "known";
  readonly response: StoredResponse;
}

/** What a submission ends in: the outcome of its hold, the key's earlier response, or no place for another job. */
export type Submitted =
  | { readonly is: HoldOutcome }
  | Known
  | { readonly is: "full"; readonly bound: "account" | "all" };

/** The end of a response that is charged. */
export interface Completion extends Settlement {
  readonly owner: string;
  readonly object: string;
  /** The provider reported no usage: what is charged is the service's estimate. */
  readonly estimated: boolean;
}

/** The end of a response that is not charged. */
export interface Ending extends ResponseKey {
  readonly owner: string;
  readonly at: number;
  /** What `GET` shows of it; undefined: nothing is kept but its key. */
  readonly object: string | undefined;
  /** `answer`: the key returns the object; `terminal`: the key is spent; `free`: the key may be used again. */
  readonly key: "answer" | "terminal" | "free";
}

/** Nano-dollars that the charge of a job holds, and the charge's rates. */
export interface JobCharge extends Rates {
  readonly held: bigint;
}

/** A job that was taken. */
export interface Job extends ResponseKey, JobCharge {
  readonly model: string;
  readonly key: string;
  readonly request: string;
  readonly object: string;
  /** Seen time. */
  readonly submittedAt: number;
  /** How often it went back to the queue. */
  readonly repeats: number;
}

/** Running responses of an owner. */
export interface Orphan extends ResponseKey {
  readonly object: string | undefined;
  /** Whether it is a background job. */
  readonly job: boolean;
}
