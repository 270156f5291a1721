/** Failures of the robot models over HTTP and WebSocket, in the order in which the specification checks. */
import { closes, final, row, socketOnly, table } from "./core.ts";

export const ROBOT = table({
  request_too_large: row(413),
  invalid_json: socketOnly(row(400)),
  invalid_body: row(400),
  type_missing: socketOnly(row(400)),
  unknown_type: socketOnly(row(400)),
  message_too_large: socketOnly(row(413)),
  /** What waits on a socket is more than may. */
  socket_overflow: socketOnly(closes(1008, row(413, "message_too_large"))),
  session_open: socketOnly(row(400)),
  invalid_frame: socketOnly(row(400)),
  invalid_camera: socketOnly(row(400)),
  too_many_observations: socketOnly(closes(1008, row(429))),
  engine_protocol_error: socketOnly(closes(1011, row(500))),
  model_missing: closes(1008, row(400)),
  model_not_found: closes(1008, row(400)),
  messages_missing: row(400),
  no_user_message: row(400),
  invalid_content: row(400),
  invalid_content_part: row(400),
  invalid_image_url: row(400),
  unsupported_image_format: row(400),
  image_too_large: row(413),
  instruction_missing: row(400),
  instruction_too_long: row(400),
  invalid_parameter: row(400),
  handoff_unavailable: row(400),
  session_missing: row(400),
  invalid_session_id: row(400),
  state_missing: row(400),
  state_shape_mismatch: row(400),
  action_horizon_invalid: row(400),
  action_horizon_out_of_range: row(400),
  num_inference_steps_invalid: row(400),
  num_inference_steps_out_of_range: row(400),
  invalid_expected_step: row(400),
  invalid_observation_id: closes(1008, row(400)),

  idempotency_conflict: closes(1008, final(row(409))),
  /** It runs now. */
  observation_pending: closes(1008, row(409, "observation_outcome_unknown")),
  /** It ran, and its result is gone or not known to be kept. */
  observation_lost: closes(1008, row(503, "observation_outcome_unknown")),

  session_expired: closes(1008, row(410)),
  session_busy: closes(1008, row(409)),
  instruction_changed: row(400),
  session_step_conflict: row(409),
  image_count_mismatch: row(400),
  invalid_image: row(400),

  no_replica_free: closes(1008, row(429)),
  model_failure: closes(1011, row(500)),
  engine_unavailable: closes(1011, row(503)),
});
