/** The messages of the service on `/v1/responses` (contract section 3). */
import { Failure } from "../../std/failure.ts";
import type { Answer } from "../answer.ts";
import type { Served } from "../catalog.ts";
import { type ActionsFormat, chunkText, rowsBytes, usageObject } from "../checks/chunk.ts";
import { ROBOT } from "../errors.ts";

export function openedText(
  { manifest, warning }: Pick<Served, "manifest" | "warning">,
  { sessionId, step }: { sessionId: string; step: number },
): string {
  const { columns, hz, space, rows } = manifest.action;
  return JSON.stringify({
    type: "session.opened",
    session_id: sessionId,
    model: manifest.id,
    step,
    next_frames_per_camera: step === 0 ? manifest.frames.first : manifest.frames.later,
    cameras: manifest.cameras,
    rows,
    dt: 1 / hz,
    action_dim: columns.length,
    action_space: space,
    ...(warning === undefined ? {} : { bundle: "reference" }),
  });
}

export function closedText(reason: string): string {
  return JSON.stringify({ type: "session.closed", reason });
}

/** What an error says besides its failure. */
interface ErrorFacts {
  readonly closing: boolean;
  /** The id of the observation at fault, if it has one. */
  readonly observationId: string | undefined;
  /** Observations of the connection that get no answer: none of them ran or was charged. */
  readonly dropped: number;
}

export function errorText(failure: Failure, { closing, observationId, dropped }: ErrorFacts): string {
  return JSON.stringify({
    type: "error",
    code: failure.wireCode,
    message: saying(failure),
    closing,
    ...(observationId === undefined ? {} : { observation_id: observationId }),
    ...(failure.retryAfterSeconds === undefined ? {} : { retry_after: failure.retryAfterSeconds }),
    ...(dropped === 0 ? {} : { dropped }),
  });
}

/** A socket's error has no `param`, so the message names the field. */
function saying({ param, message }: Failure): string {
  return param === undefined || message.includes(param) ? message : `${param}: ${message}`;
}

/** The messages that answer an observation, in order. */
export type Sent = readonly [text: string] | readonly [text: string, rows: Uint8Array];

/** `action_chunk`, and with `f32` its rows as the next message. */
export function chunkMessages(
  answer: Answer,
  format: ActionsFormat,
  { observationId, replayed }: { readonly observationId: string | undefined; readonly replayed: boolean },
): Sent {
  const { id, usage } = answer.head;
  const text = chunkText(answer, format, {
    type: "action_chunk",
    id,
    ...(observationId === undefined ? {} : { observation_id: observationId }),
    ...(replayed ? { replayed } : {}),
    usage: usageObject(usage),
  });
  return format === "json" ? [text] : [text, rowsBytes(answer)];
}

export function noSession(): Failure {
  return new Failure(ROBOT.session_missing, "there is no session yet; send session.open first");
}

export function tooMuch(): Failure {
  return new Failure(ROBOT.engine_unavailable, "too many messages wait already; connect again in some seconds");
}
