/** The OAuth client, its grant and the errors, as the service and the command line know them. */
import { type Answers, row, table } from "../../std/failure.ts";

export const CLIENT_ID = "tendon-cli";
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** Errors of RFC 6749 section 5.2, RFC 8628 section 3.5, RFC 7009 section 2.2.1. */
export const OAUTH = table({
  invalid_request: row(400, {
    http: "the body is no form, is too large, lacks a field or has one twice.",
  }),
  invalid_client: row(401, { http: "`client_id` is not `tendon-cli`." }),
  invalid_grant: row(400, { http: "the device code is unknown, or has given its key already." }),
  unsupported_grant_type: row(400, { http: "another `grant_type` than that of device codes." }),
  authorization_pending: row(400, { http: "nobody has confirmed the code yet; ask again after the interval." }),
  slow_down: row(400, {
    http: "asked too soon; the interval is 5 seconds longer from now on. With 429: too many requests came from this address; wait for `Retry-After` seconds.",
    statuses: "4XX",
  }),
  rate_limited: row(429, { http: "too many requests came from this address; wait for `Retry-After` seconds." }),
  access_denied: row(400, {
    http: "the code was refused, the person who confirmed it has signed out, or the account may have no key.",
  }),
  expired_token: row(400, { http: "nobody confirmed the code in time; begin again." }),
  temporarily_unavailable: row(503, { http: "try again after `Retry-After` seconds.", retryAfterSeconds: 1 }),
});

export const OAUTH_ANSWERS: Answers = {
  tooLarge: OAUTH.invalid_request,
  malformed: OAUTH.invalid_request,
  unavailable: OAUTH.temporarily_unavailable,
};
