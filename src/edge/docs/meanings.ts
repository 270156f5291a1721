/** What each code of the table in `error.ts` means to a client, and what it should do. A test finds a code without one. */
import type { OauthError } from "../../error/oauth.ts";
import { LIMITS } from "../../limits.ts";

/** On every route. */
const ANYWHERE = {
  internal_error: "The service failed by a fault of its own; retry, and if it stays, report the `X-Request-Id`.",
} as const;

/** On every route that needs a key; decided before the body is read. */
const KEYED = {
  missing_api_key: "No Bearer key. Not to be retried as it is.",
  invalid_api_key: "The key is wrong or revoked. Not to be retried with the same key.",
  auth_unavailable: "Keys cannot be verified right now; retry with backoff.",
} as const;

/** On every route that runs a model; decided before anything runs. `x-should-retry: false` comes with the first three. */
const PAID = {
  payment_required: "The account has neither a payment method nor credit.",
  insufficient_credit:
    "The credit that is left does not cover what the request may cost at most. Nothing ran. A saved card alone does not fund usage.",
  spend_limit_exceeded:
    "The request could cross the account's monthly spend limit. Nothing ran; not to be retried before the limit is raised or the month is over.",
  billing_unavailable: "Billing is down. Nothing ran; retry with backoff.",
  metering_unavailable:
    "Metering is down. Nothing ran, or what ran was taken back; retry with backoff, with the same `observation_id` if there is one.",
} as const;

const CHAT = {
  request_too_large: `The body is over ${LIMITS.robotBodyBytesMax / 2 ** 20} MiB. Told from \`Content-Length\` before anything is read, or as soon as a chunked body passes it.`,
  invalid_body: `The body is no JSON object in UTF-8, is nested deeper than ${LIMITS.jsonDepthMax}, has over ${LIMITS.jsonValuesMax} values, or did not arrive within ${LIMITS.bodyMs / 1000} s.`,
  model_missing: "`model` is missing or empty.",
  model_not_found: "`model` is not a served model; the message lists those that are.",
  messages_missing: "`messages` is not an array with an item.",
  no_user_message: "No message has the role `user`.",
  invalid_content: "The last user message's `content` is neither a string nor an array of parts.",
  invalid_content_part: "A part is no `text` or `image_url` object, or its text is no string.",
  invalid_image_url:
    "An image's `image_url` is no object, its `url` no string, or what follows the prefix no strict base64.",
  unsupported_image_format: "An image is not a `data:image/jpeg;base64,` URL, or its bytes are no JPEG.",
  image_too_large: `An image is over ${LIMITS.jpegBytesMax} bytes before base64. Told from its length.`,
  instruction_missing: "Image parts without a text part, or with blank ones only.",
  instruction_too_long: "The instruction has more tokens than the model's prompt; nothing is cut off silently.",
  invalid_parameter: "`stream` or `handoff` is no boolean, or `seed` is out of range.",
  handoff_unavailable: "`handoff` is `true`.",
  session_missing: "The model keeps memory over an episode, and a request with images has no `session_id`.",
  invalid_session_id: `\`session_id\` is not 1 to ${LIMITS.sessionIdCharsMax} printable characters without white space at the ends.`,
  state_missing: "Image parts without `robot_state`.",
  state_shape_mismatch: "`robot_state` has not the model's shape, or a value that is no finite number.",
  action_horizon_invalid: "`action_horizon` is no whole number.",
  action_horizon_out_of_range: "`action_horizon` is below 1 or above the model's rows per chunk.",
  num_inference_steps_invalid: "`num_inference_steps` is no whole number.",
  num_inference_steps_out_of_range: `\`num_inference_steps\` is outside 1 to ${LIMITS.inferenceStepsMax}.`,
  invalid_expected_step: "`expected_step` is no whole number of at least 0.",
  invalid_observation_id: "`observation_id` breaks its pattern.",
  idempotency_conflict: "`observation_id` was used with another body. Send a new id with new content.",
  observation_outcome_unknown:
    "409: the observation of this id still runs. 503: it ran, but its result is not kept or not known to be. Repeat only the same request with the same id; it is never run twice.",
  session_expired: `The session idled for ${LIMITS.sessionIdleMs / 1000} s, was ended, or its state is gone. Start a new \`session_id\` with the first frames.`,
  session_busy: "Another request of this session is running; send one at a time.",
  instruction_changed: "The instruction differs from that of the session's first request.",
  session_step_conflict: "`expected_step` is not the next step; the message names it. Nothing ran.",
  image_count_mismatch: "The number of images does not fit the model and the session's step.",
  invalid_image:
    "A JPEG that cannot be decoded or has an edge that is too long; also a gripper outside 0 to 1 and a degenerate rotation, then with `param` naming the state field.",
  no_replica_free: "No capacity for another session. `Retry-After` says when a slot can come free.",
  model_failure:
    "The model failed. Step and memory are as before; retry, and if that answers 410, start a new session.",
  engine_unavailable: `The model is not reachable, still loading, full, or took longer than the service allows for a chunk (${LIMITS.chunkSecondsDefault} s unless its operator sets another time). Nothing was charged; retry after \`Retry-After\` seconds.`,
} as const;

/** Errors of the OAuth routes. */
export const OAUTH_MEANINGS: Readonly<Record<OauthError, string>> = {
  invalid_request: "the body is no form, is too large, or lacks a field.",
  invalid_client: "`client_id` is not `tendon-cli`.",
  invalid_grant: "the device code is unknown, or has given its key already.",
  unsupported_grant_type: "another `grant_type` than that of device codes.",
  authorization_pending: "nobody has confirmed the code yet; ask again after the interval.",
  slow_down: "asked too soon; the interval is 5 seconds longer from now on.",
  access_denied: "the code was refused, who confirmed it has signed out, or the account may have no key.",
  expired_token: "nobody confirmed the code in time; begin again.",
  temporarily_unavailable: "try again after `Retry-After` seconds.",
};

export const MEANINGS: Readonly<Record<string, string>> = {
  not_found: "There is no such route, or not with this method; answered with or without a key.",
  ...ANYWHERE,
  ...KEYED,
  ...PAID,
  ...CHAT,
};

/** Codes by what a route does. */
export const CODES_OF = {
  anywhere: Object.keys(ANYWHERE),
  keyed: [...Object.keys(ANYWHERE), ...Object.keys(KEYED)],
  chat: [...Object.keys(ANYWHERE), ...Object.keys(KEYED), ...Object.keys(PAID), ...Object.keys(CHAT)],
} as const;
