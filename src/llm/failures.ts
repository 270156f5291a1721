/** The failures of responses that are not the provider's: keys, capacity, records. */

import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import type { StoreDown } from "../store/store.ts";
import { LLM } from "./errors.ts";

const KEY = { param: "Idempotency-Key" } as const;

export function conflict(): Failure {
  return new Failure(LLM.idempotency_conflict, "this Idempotency-Key was used with another body; use a new key", KEY);
}

export function terminal(): Failure {
  const message = "the earlier request with this Idempotency-Key ended without a response; use a new key";
  return new Failure(LLM.idempotency_replay_terminal, message, KEY);
}

export function outcomeUnknown(): Failure {
  const message = "the earlier request with this Idempotency-Key still runs; wait, then repeat it with the same key";
  return new Failure(LLM.submission_outcome_unknown, message, { ...KEY, retryAfterSeconds: 1 });
}

export function unconfigured(model: string): Failure {
  return new Failure(
    LLM.unconfigured,
    `no provider is configured for ${model}; its operator adds [llm."${model}"] to tendon.toml`,
  );
}

export function tooMany(whose: "account" | "owner" | "all", what: "responses" | "jobs" | "streams"): Failure {
  const words = whose === "all" ? `too many ${what} are open` : `too many ${what} of this account are open`;
  return new Failure(LLM.upstream_unavailable, `${words}; nothing was charged, retry with the same key`, {
    retryAfterSeconds: 1,
  });
}

/** The provider has answered, and the store does not say that the answer is kept: it is tried again, and may be kept already. */
export function notRecorded(reason: string): Failure {
  const message = "the response may be recorded and charged or not; repeat the request with the same key in a moment";
  return new Failure(LLM.submission_outcome_unknown, message, {
    ...KEY,
    retryAfterSeconds: 1,
    detail: `store: ${reason}`,
  });
}

/** It may have been accepted, and then it runs once. */
export function notConfirmed(reason: string): Failure {
  const message = "the store did not say in time whether the request is accepted; repeat it with the same key";
  return new Failure(LLM.submission_outcome_unknown, message, {
    ...KEY,
    retryAfterSeconds: 1,
    detail: `store: ${reason}`,
  });
}

/** What may have been recorded of the request is taken back. */
export function notBegun(reason: string): Failure {
  return new Failure(EVERY.billing_unavailable, "billing is down, nothing ran; retry with backoff", {
    retryAfterSeconds: 1,
    detail: `store: ${reason}`,
  });
}

/** Nothing was asked of the provider. */
export function storeDown({ reason }: StoreDown): Failure {
  const message = "the store of responses does not answer; retry with the same key";
  return new Failure(LLM.upstream_unavailable, message, { retryAfterSeconds: 1, detail: `store: ${reason}` });
}

/** A drill that says so, if one does. */
export function drilledMoney(
  strikes: (name: "billing_unavailable" | "metering_unavailable") => boolean,
): Failure | undefined {
  for (const name of ["billing_unavailable", "metering_unavailable"] as const) {
    if (!strikes(name)) continue;
    const message = `${name.replace("_", " is ")}, nothing ran; retry with backoff`;
    return new Failure(EVERY[name], message, { retryAfterSeconds: 1 });
  }
  return undefined;
}
