/**
 * Every error of an episode on a socket in words. Whether it closes, and with which code, is that of the table in `error.ts`;
 * the compiler finds a row of it that has no words here.
 */
import { Failure } from "../../error/core.ts";
import { EVERY } from "../../error/every-route.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import { type Html, html, prose } from "../../web/markup.ts";

/** These have no place on a socket: the handshake answers them, or what they are about cannot be there. */
type NotOnSocket =
  | "not_found"
  | "missing_api_key"
  | "request_too_large"
  | "messages_missing"
  | "no_user_message"
  | "invalid_content"
  | "invalid_content_part"
  | "invalid_image_url"
  // A session is taken up when its last run is over, and one connection runs one after another.
  | "observation_pending";

const TABLE = { ...EVERY, ...ROBOT };
type Code = keyof typeof TABLE;

type Words = Readonly<Partial<Record<Code, string>>>;

const MESSAGE = {
  invalid_json: "The text is no JSON.",
  invalid_body: "JSON, but no object, or one that is nested too deeply or has too many values.",
  type_missing: "The object has no `type`.",
  unknown_type: "The `type` is none of `session.open`, `observation`, `session.close`.",
  message_too_large: "A text message over its limit while a session is open. Frames are binary messages.",
  session_missing:
    "A frame, an observation or a `session.close` without a session: before `session.open`, or sent behind one that is refused. Each has an error of its own.",
} as const satisfies Words;

const OPEN = {
  session_open: "The connection has a session already, and keeps it.",
  model_missing: "`model` is missing or empty.",
  model_not_found: "`model` is not served; the message lists the models that are.",
  instruction_missing: "`instruction` is missing, blank or no string.",
  instruction_too_long: "The instruction has more tokens than the model's prompt; nothing is cut off silently.",
  handoff_unavailable: "`handoff` is `true`.",
  invalid_parameter: "`handoff` is no boolean, `seed` out of range, or `actions_format` neither `json` nor `f32`.",
  invalid_session_id: "`session_id` is too long, not printable, empty, or has white space at an end.",
  instruction_changed: "The session that is resumed has another instruction.",
  session_busy: "Another connection, or a request over HTTP, has this session.",
  no_replica_free: "No capacity for another session. Retry in a while.",
} as const satisfies Words;

const FRAME = {
  invalid_frame: "Shorter than the camera's byte and the start of a JPEG.",
  invalid_camera: "The first byte is no index of a camera.",
  image_too_large: "The JPEG has too many bytes.",
  unsupported_image_format: "What follows the first byte is no JPEG.",
} as const satisfies Words;

const OBSERVATION = {
  state_missing: "There is no `robot_state`.",
  state_shape_mismatch: "`robot_state` has not the model's shape, or a value that is no finite number.",
  action_horizon_invalid: "`action_horizon` is no whole number. Also in answer to `session.open`.",
  action_horizon_out_of_range: "Below 1, or above the model's rows. Also in answer to `session.open`.",
  num_inference_steps_invalid: "`num_inference_steps` is no whole number. Also in answer to `session.open`.",
  num_inference_steps_out_of_range: `Outside 1 to ${LIMITS.inferenceStepsMax}. Also in answer to \`session.open\`.`,
  invalid_expected_step: "`expected_step` is no whole number of at least 0.",
  session_step_conflict: "`expected_step` is not the next step; the message names it.",
  image_count_mismatch: "Not as many frames of each camera as were due. They are dropped.",
  invalid_image:
    "A JPEG that cannot be decoded or has too long an edge; also a gripper outside 0 to 1 and a degenerate rotation. On a session's first observation `closing` is `true`, with 1008.",
  invalid_observation_id: "The id breaks its pattern; the error cannot repeat it.",
  idempotency_conflict: "The id was used with other content, or over HTTP. Send new content under a new id.",
  observation_lost:
    "It ran, and its answer is gone or not known to be kept. It is not run again; a repeat may find the answer.",
  too_many_observations: "More observations wait for their answers than may.",
  payment_required: "The account has neither a payment method nor credit.",
  insufficient_credit: "The credit that is left does not cover what the chunk may cost at most. Nothing ran.",
  spend_limit_exceeded: "The chunk could cross the monthly spend limit. Nothing ran; do not retry.",
  billing_unavailable: "Billing is down. Nothing ran; connect again with backoff.",
  metering_unavailable:
    "Metering is down; also in answer to `session.open`. Nothing ran, or what ran was taken back: connect again with backoff, and repeat the observation under its id. Only one without an id may have taken its step all the same.",
  model_failure: "The model failed. The step is where it was: connect again and repeat the observation.",
  engine_protocol_error:
    "The model's answer is not one to this observation. The step is where it was: connect again and repeat it.",
} as const satisfies Words;

const CONNECTION = {
  session_expired:
    "The session idled too long, was ended, or ended with the service, whether it had answered or not. Open a new one under a new id.",
  socket_overflow:
    "A text message over its limit before a session is open, or more bytes or messages waiting than may.",
  engine_unavailable:
    "The model is loading, full, not reachable or too slow, too much waits in the service, or it is shutting down. Nothing was charged: connect again with backoff.",
  invalid_api_key: "The key was revoked; it is looked at again with every observation.",
  auth_unavailable: "The key cannot be verified right now. Connect again with backoff.",
  internal_error: "A fault of the service's own. Connect again; if it stays, report it.",
} as const satisfies Words;

const GROUPS = [
  ["Any message", MESSAGE],
  ["session.open", OPEN],
  ["Frames", FRAME],
  ["Observations", OBSERVATION],
  ["The connection", CONNECTION],
] as const;

const ALL: Readonly<Record<Exclude<Code, NotOnSocket>, string>> = {
  ...MESSAGE,
  ...OPEN,
  ...FRAME,
  ...OBSERVATION,
  ...CONNECTION,
};

export function errorsTable(): Html {
  const groups = GROUPS.map(([title, codes]) => {
    const rows = (Object.keys(codes) as (keyof typeof ALL)[]).map((code) => errorRow(code));
    return html`<tbody>
<tr class="group"><th colspan="4" scope="rowgroup">${title}</th></tr>
${rows}</tbody>
`;
  });
  return html`<table class="errors">
<thead><tr><th>Code</th><th>closing</th><th>Close code</th><th>When, and what to do</th></tr></thead>
${groups}</table>
`;
}

function errorRow(code: keyof typeof ALL): Html {
  const { wireCode, close } = new Failure(TABLE[code], "");
  const closes =
    close === undefined ? html`<td class="none">–</td>` : html`<td><span class="what">close </span>${close}</td>`;
  return html`<tr><td><code>${wireCode}</code></td><td><span class="what">closing </span>${String(close !== undefined)}</td>${closes}<td>${prose(ALL[code])}</td></tr>
`;
}
