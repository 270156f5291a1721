/** Failures of the robot models over HTTP and WebSocket, in the order in which the specification checks. */
import { LIMITS } from "../limits.ts";
import { type Answers, row, table } from "../std/failure.ts";

/** Groups of the list of errors on a WebSocket: what an error answers. */
const MESSAGE = "Any message";
const OPEN = "session.open";
const FRAME = "Frames";
const OBSERVATION = "Observations";
const EITHER = "Observations and session.open";
const CONNECTION = "The connection";

const MiB = 2 ** 20;

export const ROBOT = table({
  request_too_large: row(413, {
    http: `The body is over ${LIMITS.robotBodyBytesMax / MiB} MiB. Known from \`Content-Length\` before anything is read, or as soon as a chunked body passes it.`,
  }),
  invalid_json: row(400, { socket: [MESSAGE, "The text is not JSON."] }),
  invalid_body: row(400, {
    http: `The body is not a JSON object in UTF-8, is nested deeper than ${LIMITS.jsonDepthMax}, has over ${LIMITS.jsonValuesMax} values, or did not arrive within ${LIMITS.bodyMs / 1000} s.`,
    socket: [MESSAGE, "JSON, but not an object, or one that is nested too deeply or has too many values."],
  }),
  type_missing: row(400, { socket: [MESSAGE, "The object has no `type`."] }),
  unknown_type: row(400, {
    socket: [MESSAGE, "The `type` is none of `session.open`, `observation`, `session.close`."],
  }),
  message_too_large: row(413, {
    socket: [MESSAGE, "A text message over its limit while a session is open. Frames are binary messages."],
  }),
  session_open: row(400, { socket: [OPEN, "The connection has a session already, and keeps it."] }),
  invalid_frame: row(400, { socket: [FRAME, "Shorter than the camera's byte and the start of a JPEG."] }),
  invalid_camera: row(400, { socket: [FRAME, "The first byte is not the index of a camera."] }),
  model_missing: row(400, { http: "`model` is missing or empty.", socket: [OPEN], close: 1008 }),
  model_not_found: row(400, {
    http: "`model` is not a served model; the message lists those that are.",
    socket: [OPEN],
    close: 1008,
  }),
  messages_missing: row(400, { http: "`messages` is not an array with an item." }),
  no_user_message: row(400, { http: "No message has the role `user`." }),
  invalid_content: row(400, { http: "The last user message's `content` is neither a string nor an array of parts." }),
  invalid_content_part: row(400, {
    http: "A part is not a `text` or `image_url` object, or its text is not a string.",
  }),
  invalid_image_url: row(400, {
    http: "An image's `image_url` is not an object, its `url` not a string, or what follows the prefix not strict base64.",
  }),
  unsupported_image_format: row(400, {
    http: "An image is not a `data:image/jpeg;base64,` URL, or its bytes are not a JPEG.",
    socket: [FRAME, "What follows the first byte is not a JPEG."],
  }),
  image_too_large: row(413, {
    http: `An image is over ${LIMITS.jpegBytesMax} bytes before base64, by its length.`,
    socket: [FRAME, "The JPEG has too many bytes."],
  }),
  instruction_missing: row(400, {
    http: "Image parts without a text part, or with blank ones only.",
    socket: [OPEN, "`instruction` is missing, blank or not a string."],
  }),
  instruction_too_long: row(400, {
    http: "The instruction has more tokens than the model's prompt; nothing is cut off silently.",
    socket: [OPEN],
  }),
  invalid_parameter: row(400, {
    http: "`stream` or `handoff` is not a boolean, or `seed` or `deadline_ms` is out of range.",
    socket: [
      OPEN,
      "`handoff` is not a boolean, `seed` is out of range, or `actions_format` is neither `json` nor `f32`. Also in answer to an observation whose `deadline_ms` is out of range.",
    ],
  }),
  handoff_unavailable: row(400, { http: "`handoff` is `true`.", socket: [OPEN] }),
  session_missing: row(400, {
    http: "The model keeps memory over an episode, and a request with images has no `session_id`.",
    socket: [
      MESSAGE,
      "A frame or an observation without a session: before `session.open`, or sent behind one that is refused. Each has its own error.",
    ],
  }),
  invalid_session_id: row(400, {
    http: `\`session_id\` is not 1 to ${LIMITS.sessionIdCharsMax} printable characters without white space at the ends.`,
    socket: [OPEN],
  }),
  state_missing: row(400, { http: "An observation without `robot_state`.", socket: [OBSERVATION] }),
  state_shape_mismatch: row(400, {
    http: "`robot_state` does not have the model's shape, or has a value that is not a finite number.",
    socket: [OBSERVATION],
  }),
  action_horizon_invalid: row(400, { http: "`action_horizon` is not a whole number.", socket: [EITHER] }),
  action_horizon_out_of_range: row(400, {
    http: "`action_horizon` is below 1 or above the model's rows per chunk.",
    socket: [EITHER],
  }),
  num_inference_steps_invalid: row(400, { http: "`num_inference_steps` is not a whole number.", socket: [EITHER] }),
  num_inference_steps_out_of_range: row(400, {
    http: `\`num_inference_steps\` is outside 1 to ${LIMITS.inferenceStepsMax}.`,
    socket: [EITHER],
  }),
  invalid_expected_step: row(400, {
    http: "`expected_step` is not a whole number of at least 0.",
    socket: [OBSERVATION],
  }),
  invalid_observation_id: row(400, {
    http: "`observation_id` does not match its pattern.",
    socket: [OBSERVATION, "The id does not match its pattern; the error cannot repeat it."],
    close: 1008,
  }),

  idempotency_conflict: row(409, {
    http: "`observation_id` was used with another observation, over HTTP or on a socket. Send new content under a new id.",
    socket: [OBSERVATION],
    close: 1008,
    final: true,
  }),
  observation_pending: row(409, {
    http: "The observation of this id still runs, over HTTP or on a socket. Repeat it in a moment under its id; it is never run twice.",
    socket: [OBSERVATION],
    wire: "observation_outcome_unknown",
    close: 1008,
  }),
  observation_lost: row(503, {
    http: "The observation of this id was answered, but its result is no longer kept. It is not run again; a repeat gets the same.",
    socket: [OBSERVATION],
    wire: "observation_outcome_unknown",
    close: 1008,
    final: true,
  }),
  observation_unknown: row(503, {
    http: "The answer may be durably recorded or not. Repeat the observation under its id after the named time; it is never run twice. One without an id may have taken its step.",
    socket: [OBSERVATION],
    wire: "observation_outcome_unknown",
    close: 1008,
  }),

  session_expired: row(410, {
    http: `The session idled for ${LIMITS.sessionIdleMs / 1000} s, was ended, or its state is gone. Start a new \`session_id\` with the first frames.`,
    socket: [
      CONNECTION,
      "The session idled too long, was ended, or ended with the service, whether it had answered or not. Open a new one under a new id.",
    ],
    close: 1008,
  }),
  /** More bytes or messages wait on a socket than its limits allow. */
  socket_overflow: row(413, {
    socket: [
      CONNECTION,
      "A text message over its limit before a session is open, or more bytes or messages waiting than may.",
    ],
    wire: "message_too_large",
    close: 1008,
  }),
  session_busy: row(409, {
    http: "Another request of this session is running; send one at a time.",
    socket: [
      OPEN,
      "Another connection, or a request over HTTP, has this session. Also without a question: another connection of the same key has taken it over, because this one answered no ping.",
    ],
    close: 1008,
  }),
  instruction_changed: row(400, {
    http: "The instruction differs from that of the session's first request.",
    socket: [OPEN, "The session that is resumed has another instruction."],
  }),
  session_step_conflict: row(409, {
    http: "`expected_step` is not the next step; the message names it. Or there is none, and another key asked for the session's last chunk: two robots may be using one `session_id`. Nothing ran.",
    socket: [OBSERVATION],
  }),
  image_count_mismatch: row(400, {
    http: "The number of images does not fit the model and the session's step.",
    socket: [OBSERVATION, "Not as many frames of each camera as were due. They are dropped."],
  }),
  invalid_image: row(400, {
    http: "A JPEG that cannot be decoded, has an edge that is too long, or, for a model that resizes none, has another size. Also a gripper outside 0 to 1 and a degenerate rotation; `param` then names the state field.",
    socket: [
      OBSERVATION,
      "A JPEG that cannot be decoded, has an edge that is too long, or, for a model that resizes none, has another size. Also a gripper outside 0 to 1 and a degenerate rotation. On a session's first observation `closing` is `true`, with 1008.",
    ],
  }),
  too_many_observations: row(429, {
    socket: [OBSERVATION, "More observations wait for their answers than may."],
    close: 1008,
  }),

  no_replica_free: row(429, {
    http: "No capacity for another session. `Retry-After` says when a slot can come free.",
    socket: [OPEN, "No capacity for another session. Retry in a while."],
    close: 1008,
  }),
  model_failure: row(500, {
    http: "The model failed. Step and memory are as before; retry, and if that answers 410, start a new session.",
    socket: [OBSERVATION, "The model failed. The step is unchanged: connect again and repeat the observation."],
    close: 1011,
  }),
  engine_protocol_error: row(500, {
    socket: [
      OBSERVATION,
      "The model's answer does not belong to this observation. The step is unchanged: connect again and repeat it.",
    ],
    close: 1011,
  }),
  engine_unavailable: row(503, {
    http: `The model is not reachable, still loading or full, or the chunk was late. The time for a chunk is the request's \`deadline_ms\`, or that of the service (${LIMITS.chunkSecondsDefault} s by default). Nothing was charged; retry after \`Retry-After\` seconds.`,
    socket: [
      CONNECTION,
      "The model is loading, full, not reachable or too slow, also for the observation's `deadline_ms`, too much waits in the service, or it is shutting down. Nothing was charged: connect again with backoff.",
    ],
    // A robot that is to come back must know when.
    close: 1011,
    retryAfterSeconds: 1,
  }),
});

export const ROBOT_ANSWERS: Answers = {
  tooLarge: ROBOT.request_too_large,
  malformed: ROBOT.invalid_body,
  unavailable: ROBOT.engine_unavailable,
};
