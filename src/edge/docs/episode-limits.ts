/** The bounds of an episode on a socket. The texts of the page refer to them as `{{name}}`. */
import { LIMITS } from "../../limits.ts";

const whole = (value: number) => value.toLocaleString("en-US");
const mebibytes = (bytes: number) => `${whole(bytes / 2 ** 20)} MiB`;
const seconds = (ms: number) => `${whole(ms / 1000)} s`;

export const EPISODE_LIMITS: Readonly<Record<string, string>> = {
  textChars: whole(LIMITS.socketTextCharsMax),
  payload: mebibytes(LIMITS.socketPayloadBytesMax),
  jpegBytes: whole(LIMITS.jpegBytesMax),
  jpegEdge: whole(LIMITS.jpegEdgePxMax),
  observations: whole(LIMITS.socketObservationsMax),
  pendingBytes: mebibytes(LIMITS.socketPendingBytesMax),
  pendingMessages: whole(LIMITS.socketPendingMessagesMax),
  unsent: mebibytes(LIMITS.socketUnsentBytesMax),
  silence: `${LIMITS.socketSilentSeconds} s`,
  idle: seconds(LIMITS.sessionIdleMs),
  chunk: `${LIMITS.chunkSecondsDefault} s`,
  horizon: `1 to the model's rows, at most ${LIMITS.actionHorizonMax}`,
  steps: `1 to ${LIMITS.inferenceStepsMax}`,
  sessionId: whole(LIMITS.sessionIdCharsMax),
  observationId: whole(LIMITS.observationIdCharsMax),
  json: `${LIMITS.jsonDepthMax} and ${whole(LIMITS.jsonValuesMax)}`,
  sockets: `${whole(LIMITS.accountSocketsMax)} and ${whole(LIMITS.socketsMax)}`,
  shutdown: seconds(LIMITS.drainMs),
  ended: `${LIMITS.sessionEndedMs / 3_600_000} hours`,
};
