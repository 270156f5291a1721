/** The text messages of `/v1/responses` (contract section 3): those of a client with their checks, then those of the service. */
import { type Check, firstFailure } from "../../http/check.ts";
import { isObject, type JsonObject, jsonBounds } from "../../http/json.ts";
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { Failure } from "../../std/failure.ts";
import { type ActionsFormat, type Answer, chunkText, rowsBytes, usageObject } from "../answer.ts";
import type { Catalog, Served } from "../catalog.ts";
import type { ObserveCommand } from "../command.ts";
import { ROBOT } from "../errors.ts";
import * as field from "../http/fields.ts";
import type { FrameGroup } from "./frames.ts";

const TYPES = ["session.open", "observation", "session.close"] as const;

export interface ClientMessage {
  readonly type: (typeof TYPES)[number];
  readonly body: JsonObject;
}

/** Failures: `invalid_json`, `invalid_body`, `type_missing`, `unknown_type`. */
export function parseMessage(text: string): ClientMessage | Failure {
  const outside = jsonBounds(Buffer.from(text));
  if (outside !== undefined) return new Failure(ROBOT.invalid_body, outside);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return new Failure(ROBOT.invalid_json, "the message is not JSON; send one JSON object");
  }
  if (!isObject(body))
    return new Failure(ROBOT.invalid_body, "the message is JSON, but not an object; send one JSON object");
  const known = `send one of ${TYPES.join(", ")}`;
  if ((body.type ?? undefined) === undefined)
    return new Failure(ROBOT.type_missing, `the message has no type; ${known}`);
  const type = TYPES.find((name) => name === body.type);
  if (type === undefined) return new Failure(ROBOT.unknown_type, `the message's type is not known; ${known}`);
  return { type, body };
}

/** The message, which was not worked on, is an observation. */
export function isObservation(message: string | Uint8Array): boolean {
  if (typeof message !== "string" || lengthFault(message, true)) return false;
  const read = parseMessage(message);
  return !(read instanceof Failure) && read.type === "observation";
}

/** Failures: `message_too_large`, which closes if no session is open. */
export function lengthFault(text: string, sessionOpen: boolean): Failure | undefined {
  if (!isTooLong(text)) return undefined;
  const message = `a text message has at most ${LIMITS.socketTextCharsMax} characters; frames are binary messages`;
  return new Failure(sessionOpen ? ROBOT.message_too_large : ROBOT.socket_overflow, message);
}

/** The text has more characters (code points) than a message may have. */
function isTooLong(text: string): boolean {
  const max = LIMITS.socketTextCharsMax;
  if (text.length <= max || text.length > 2 * max) return text.length > max;
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars > max;
}

/** The `observation_id` that an error may repeat. */
export function echoedId({ observation_id: id }: JsonObject): string | undefined {
  return field.isObservationId(id) ? id : undefined;
}

/** A `session.open` after its checks. Rows, steps of inference and seed are those of an observation that does not say otherwise. */
export interface Opening extends Pick<ObserveCommand, "served" | "instruction" | "rows" | "inferenceSteps" | "seed"> {
  readonly sessionId: string | undefined;
  readonly format: ActionsFormat;
}

class OpeningDraft extends field.ModelDraft {
  format: ActionsFormat = "json";
}

const instruction: Check<OpeningDraft> = {
  run(draft) {
    const text = draft.optional("instruction");
    draft.values.instruction = typeof text === "string" ? text : "";
    return field.instructionFault(draft, "instruction");
  },
};

const actionsFormat: Check<OpeningDraft> = {
  run(draft) {
    const format = draft.optional("actions_format") ?? "json";
    if (format !== "json" && format !== "f32") {
      const message = 'actions_format must be "json" or "f32"';
      return new Failure(ROBOT.invalid_parameter, message, { param: "actions_format" });
    }
    draft.format = format;
    return undefined;
  },
};

const OPENING: readonly Check<OpeningDraft>[] = [
  field.model,
  instruction,
  field.handoff,
  field.seed,
  actionsFormat,
  field.noHandoff,
  field.sessionId,
  field.horizon,
  field.inferenceSteps,
];

const OBSERVATION: readonly Check<field.FieldDraft>[] = [
  field.deadline,
  field.robotState,
  field.horizon,
  field.inferenceSteps,
  field.expectedStep,
  field.observationId,
];

export function readOpening(body: JsonObject, catalog: Catalog): Opening | Failure {
  const draft = new OpeningDraft(body, catalog);
  const failure = firstFailure(OPENING, draft);
  if (failure) return failure;
  const { model: served, values, format } = draft;
  const { instruction = "", sessionId, rows = served.manifest.action.rows, inferenceSteps, seed = 0 } = values;
  return { served, instruction, sessionId, rows, inferenceSteps, seed, format };
}

/** An `observation` of an open session after its checks, with the frames that it took. */
export function readObservation(
  body: JsonObject,
  { served, instruction, sessionId, rows, inferenceSteps, seed }: Opening & { readonly sessionId: string },
  frames: FrameGroup,
): ObserveCommand | Failure {
  const draft = new field.FieldDraft(body, served);
  const failure = firstFailure(OBSERVATION, draft);
  if (failure) return failure;
  const state = present(draft.values.state, "the checked robot_state");
  return { served, instruction, sessionId, rows, inferenceSteps, seed, ...draft.values, frames, state };
}

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
  return format === "json" ? [text] : [text, rowsBytes(answer.rows)];
}

export function noSession(): Failure {
  return new Failure(ROBOT.session_missing, "there is no session yet; send session.open first");
}

export function tooMuch(): Failure {
  return new Failure(ROBOT.engine_unavailable, "too many messages wait already; connect again in some seconds");
}
