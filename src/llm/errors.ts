/** Failures of the language models (specification, "LLM models"; contract section 4), in the specification's order. */
import { type Answers, row, table } from "../std/failure.ts";

export const LLM = table({
  invalid_request: row(422, {
    http: "The body is not a JSON object, names an unknown model, or has an unsupported field.",
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
    http: "The model provider rejected the request; the status is the provider's.",
    statuses: "4XX",
    final: true,
  }),
  upstream_unavailable: row(503, {
    http: "The provider or the stored response is unavailable; retry with the same key, or retry the GET.",
  }),
  invalid_upstream_response: row(502, { http: "The provider answered something invalid." }),
  unconfigured: row(503, { http: "No provider is configured for this model." }),
  invalid_id: row(422, { http: "The response id in the path does not match its pattern.", final: true }),
  response_not_found: row(404, { http: "The account has no response with this id.", wire: "not_found" }),
  response_lost: row(503, {
    event: "The `error` of a response whose process ended while it ran. It is not run again, and nothing was charged.",
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
