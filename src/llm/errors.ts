/** Failures of the language models (specification, "LLM models"; contract section 4), in the specification's order; and those that are not the provider's. */
import { EVERY } from "../std/every-route.ts";
import { type Answers, Failure, row, table } from "../std/failure.ts";
import type { StoreDown } from "../store/store.ts";

export const LLM = table({
  invalid_request: row(422, {
    http: "The body is not a JSON object, names an unknown model, or has an unsupported field or parameter.",
    final: true,
  }),
  body_too_large: row(413, { http: "The body is over 2 MiB.", wire: "invalid_request" }),
  invalid_idempotency_key: row(422, { http: "`Idempotency-Key` does not match its pattern.", final: true }),
  idempotency_conflict: row(409, { http: "`Idempotency-Key` was used with another body.", final: true }),
  idempotency_replay_terminal: row(409, {
    http: "The earlier request with this key ended without a response; use a new key.",
    final: true,
  }),
  submission_outcome_unknown: row(409, {
    http: "The earlier request with this key may still be submitting, or nobody knows yet whether its response is recorded; wait, then repeat with the same key.",
  }),
  upstream_rejected: row(400, {
    http: "The model provider rejected the request; status and `param` are the provider's.",
    statuses: "4XX",
    final: true,
  }),
  upstream_unavailable: row(503, {
    http: "The provider or the stored response is unavailable; retry with the same key, or retry the GET.",
  }),
  invalid_upstream_response: row(502, { http: "The provider answered something invalid; use a new key.", final: true }),
  response_broken: row(500, {
    http: "The service failed because of a bug in it while the response ran; use a new key.",
    wire: "internal_error",
    final: true,
  }),
  unconfigured: row(503, { http: "No provider is configured for this model." }),
  invalid_id: row(422, { http: "The response id in the path does not match its pattern.", final: true }),
  response_not_found: row(404, { http: "The account has no response with this id.", wire: "not_found" }),
  response_lost: row(503, {
    event:
      "The `error` of a response whose process ended before it did. It is not begun again, and nothing was charged.",
    wire: "server_error",
  }),
  stream_timeout: row(503, {
    event:
      "The connection lasted 30 minutes; the job goes on. Poll the response, or repeat the request with the same key.",
  }),
  stream_unavailable: row(503, {
    event:
      "The stream could not read the job; the job goes on. Poll the response, or repeat the request with the same key.",
  }),
});

export const LLM_ANSWERS: Answers = {
  tooLarge: LLM.body_too_large,
  malformed: LLM.invalid_request,
  unavailable: LLM.upstream_unavailable,
};

const KEY = { param: "Idempotency-Key" } as const;
const SOON = { retryAfterSeconds: 1 } as const;

export function conflict(): Failure {
  return new Failure(LLM.idempotency_conflict, "this Idempotency-Key was used with another body; use a new key", KEY);
}

export function terminal(): Failure {
  const message = "the earlier request with this Idempotency-Key ended without a response; use a new key";
  return new Failure(LLM.idempotency_replay_terminal, message, KEY);
}

export function stillRuns(): Failure {
  const message = "the earlier request with this Idempotency-Key still runs; wait, then repeat it with the same key";
  return new Failure(LLM.submission_outcome_unknown, message, { ...KEY, ...SOON });
}

/** The store has not said whether it has done a write. */
export function unsaid(message: string, reason: string): Failure {
  return new Failure(LLM.submission_outcome_unknown, message, { ...KEY, ...SOON, detail: `store: ${reason}` });
}

export function unconfigured(model: string): Failure {
  const message = `no provider is configured for ${model}; its operator adds [llm."${model}"] to tendon.toml`;
  return new Failure(LLM.unconfigured, message);
}

export function tooMany(whose: "account" | "owner" | "all", what: "responses" | "jobs" | "streams"): Failure {
  const words = whose === "all" ? `too many ${what} are open` : `too many ${what} of this account are open`;
  return new Failure(LLM.upstream_unavailable, `${words}; nothing was charged, retry with the same key`, SOON);
}

/** Nothing was asked of the provider. */
export function storeDown({ reason }: StoreDown): Failure {
  const message = "the store of responses does not answer; retry with the same key";
  return new Failure(LLM.upstream_unavailable, message, { ...SOON, detail: `store: ${reason}` });
}

/** The process of the response has ended. Its provider may have been called, so it is not called again. */
export function stopped(): Failure {
  const message =
    "the service stopped before the response ended; it is not begun again, nothing was charged, send it with a new key";
  return new Failure(LLM.response_lost, message);
}

/** A bug of ours. The provider may have been called, so it is not called again. */
export function bug(id: string): Failure {
  const message = `the service failed because of a bug in it; nothing was charged, use a new key, and report ${id}`;
  return new Failure(LLM.response_broken, message);
}

/** What a drill says of the money, if one does. */
export function drilledMoney(
  strikes: (name: "billing_unavailable" | "metering_unavailable") => boolean,
): Failure | undefined {
  const name = (["billing_unavailable", "metering_unavailable"] as const).find(strikes);
  const message = `${name?.replace("_", " is ")}, nothing ran; retry with backoff`;
  return name && new Failure(EVERY[name], message, SOON);
}
