/** Failures of every route (specification, "Every route"): the route, the key, the money, and our own faults. */
import { type Row, row, table } from "./failure.ts";

export const EVERY = table({
  not_found: row(404, { http: "There is no such route, or not with this method; answered with or without a key." }),
  missing_api_key: row(401, { http: "No Bearer key. Not to be retried as it is.", close: 1008 }),
  invalid_api_key: row(401, {
    http: "The key is wrong or revoked. Not to be retried with the same key.",
    socket: ["The connection", "The key was revoked; it is checked again with every observation."],
    close: 1008,
  }),
  payment_required: row(402, {
    http: "The account has neither a payment method nor credit.",
    socket: ["Observations"],
    close: 1008,
    final: true,
  }),
  insufficient_credit: row(402, {
    http: "The credit that is left does not cover what the request may cost at most. Nothing ran. A saved card alone does not fund usage.",
    socket: ["Observations", "The credit that is left does not cover what the chunk may cost at most. Nothing ran."],
    close: 1008,
    final: true,
  }),
  spend_limit_exceeded: row(429, {
    http: "The request could cross the account's monthly spend limit. Nothing ran; not to be retried before the limit is raised or the month is over.",
    socket: ["Observations", "The chunk could cross the monthly spend limit. Nothing ran; do not retry."],
    close: 1008,
    final: true,
    type: "billing_error",
  }),
  rate_limited: row(429, {
    http: "Too much was refused or free: requests of the account that nobody pays for took more processor time within a minute than they may. Nothing was read; retry after `Retry-After`. Without a valid key: too many unknown ones came from this address; a key that has worked is not held up by them.",
    socket: [
      "The connection",
      "Refused observations and other requests of the account that nobody pays for took too much processor time within a minute. Connect again after a while, and mend what is refused.",
    ],
    close: 1008,
  }),
  auth_unavailable: row(503, {
    http: "Keys cannot be verified right now; retry with backoff.",
    socket: ["The connection", "The key cannot be verified right now. Connect again with backoff."],
    close: 1008,
  }),
  billing_unavailable: row(503, {
    http: "Billing is down. Nothing ran; retry with backoff.",
    socket: ["Observations", "Billing is down. Nothing ran; connect again with backoff."],
    close: 1008,
  }),
  metering_unavailable: row(503, {
    http: "Metering is down. Nothing ran: no step was taken and nothing was charged; retry with backoff, with the same `observation_id` or `Idempotency-Key` if there is one.",
    socket: [
      "Observations",
      "Metering is down; also in answer to `session.open`. Nothing ran, no step was taken and nothing was charged: connect again with backoff, and repeat the observation under its id.",
    ],
    close: 1008,
  }),
  /** The log has what it was, under the request's id. */
  internal_error: row(500, {
    http: "The service failed because of a bug in it; retry, and if it stays, report the `X-Request-Id`.",
    socket: ["The connection", "A bug of the service. Connect again; if it stays, report it."],
    close: 1011,
  }),
});

/** What the check of a key may end in. */
export const KEY_ROWS: readonly Row[] = [
  EVERY.missing_api_key,
  EVERY.invalid_api_key,
  EVERY.rate_limited,
  EVERY.auth_unavailable,
];

/** What the hold of a request's maximum cost may end in; decided before anything runs. */
export const MONEY_ROWS: readonly Row[] = [
  EVERY.payment_required,
  EVERY.insufficient_credit,
  EVERY.spend_limit_exceeded,
  EVERY.billing_unavailable,
  EVERY.metering_unavailable,
];
