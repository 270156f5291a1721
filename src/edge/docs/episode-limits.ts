/** The bounds of an episode on a socket, and what happens beyond each. The text of the page refers to them as `{{name}}`. */
import { LIMITS } from "../../limits.ts";
import { type Html, html } from "../../web/markup.ts";
import { prose } from "./markdown.ts";

interface Limit {
  readonly what: string;
  readonly value: string;
  readonly beyond: string;
}

const whole = (value: number) => value.toLocaleString("en-US");
const mebibytes = (bytes: number) => `${whole(bytes / 2 ** 20)} MiB`;
const seconds = (ms: number) => `${whole(ms / 1000)} s`;

export const EPISODE_LIMITS: Readonly<Record<string, Limit>> = {
  textChars: {
    what: "Characters of a text message",
    value: whole(LIMITS.socketTextCharsMax),
    beyond: "`message_too_large`; before a session is open it closes, 1008",
  },
  payload: {
    what: "Any message",
    value: mebibytes(LIMITS.socketPayloadBytesMax),
    beyond: "close 1009, without an error message",
  },
  jpegBytes: {
    what: "Bytes of one JPEG",
    value: whole(LIMITS.jpegBytesMax),
    beyond: "`image_too_large`; the frame is not pending",
  },
  jpegEdge: {
    what: "Edge of a JPEG, in pixels",
    value: whole(LIMITS.jpegEdgePxMax),
    beyond: "`invalid_image`, at the observation",
  },
  observations: {
    what: "Observations that wait for their answers, the running one included",
    value: whole(LIMITS.socketObservationsMax),
    beyond: "`too_many_observations`, 1008",
  },
  pendingBytes: {
    what: "Bytes that no runner has taken yet; also the frames of one observation",
    value: mebibytes(LIMITS.socketPendingBytesMax),
    beyond: "`message_too_large`, 1008",
  },
  pendingMessages: {
    what: "Messages that no runner has taken yet",
    value: whole(LIMITS.socketPendingMessagesMax),
    beyond: "`message_too_large`, 1008",
  },
  unsent: {
    what: "Answers that the client does not read",
    value: mebibytes(LIMITS.socketUnsentBytesMax),
    beyond: "close 1013, without an error message",
  },
  silence: {
    what: "A connection without a byte, not even a pong",
    value: `${LIMITS.socketSilentSeconds} s`,
    beyond: "taken to be gone; its session can be resumed",
  },
  idle: {
    what: "A session without an observation, held by a connection or not",
    value: seconds(LIMITS.sessionIdleMs),
    beyond: "`session_expired`, 1008",
  },
  chunk: {
    what: "From an observation's turn to its chunk, unless the operator sets another time",
    value: `${LIMITS.chunkSecondsDefault} s`,
    beyond: "`engine_unavailable`, 1011; nothing is charged",
  },
  horizon: {
    what: "`action_horizon`",
    value: `1 to the model's rows, at most ${LIMITS.actionHorizonMax}`,
    beyond: "`action_horizon_out_of_range`",
  },
  steps: {
    what: "`num_inference_steps`",
    value: `1 to ${LIMITS.inferenceStepsMax}`,
    beyond: "`num_inference_steps_out_of_range`",
  },
  sessionId: {
    what: "Characters of `session_id`",
    value: whole(LIMITS.sessionIdCharsMax),
    beyond: "`invalid_session_id`",
  },
  observationId: {
    what: "Characters of `observation_id`",
    value: whole(LIMITS.observationIdCharsMax),
    beyond: "`invalid_observation_id`, 1008",
  },
  json: {
    what: "Depth and number of values of a message's JSON",
    value: `${LIMITS.jsonDepthMax} and ${whole(LIMITS.jsonValuesMax)}`,
    beyond: "`invalid_body`",
  },
  sockets: {
    what: "Connections of one account, and of the service",
    value: `${whole(LIMITS.accountSocketsMax)} and ${whole(LIMITS.socketsMax)}`,
    beyond: "the handshake answers 503 `engine_unavailable`",
  },
  shutdown: {
    what: "Answers that the service owes when it shuts down",
    value: seconds(LIMITS.drainMs),
    beyond: "`engine_unavailable`, 1011",
  },
  ended: {
    what: "An ended session's id, and its observations' ids, are known",
    value: `${LIMITS.sessionEndedMs / 3_600_000} hours`,
    beyond: "the id begins a new session",
  },
};

export function limitsTable(): Html {
  const rows = Object.values(EPISODE_LIMITS).map(
    ({ what, value, beyond }) => html`<tr><td>${prose(what)}</td><td>${value}</td><td>${prose(beyond)}</td></tr>
`,
  );
  return html`<table class="limits">
<thead><tr><th>What</th><th>At most</th><th>Beyond it</th></tr></thead>
<tbody>
${rows}</tbody>
</table>
`;
}
