/** Failures of every route (specification, "Every route"): the route, the key, the money, and our own faults. */
import { closes, final, row, table } from "./core.ts";

export const EVERY = table({
  not_found: row(404),
  missing_api_key: closes(1008, row(401)),
  invalid_api_key: closes(1008, row(401)),
  payment_required: closes(1008, final(row(402))),
  insufficient_credit: closes(1008, final(row(402))),
  spend_limit_exceeded: closes(1008, { ...final(row(429)), type: "billing_error" }),
  auth_unavailable: closes(1008, row(503)),
  billing_unavailable: closes(1008, row(503)),
  metering_unavailable: closes(1008, row(503)),
  /** A fault of our own; what it was stands in the log under the request's id. */
  internal_error: closes(1011, row(500)),
});
