/** What a client says in text on `/v1/responses` (contract section 3): the form of a message, then the checks of its fields. */
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import type { Catalog, Served } from "../../robot/catalog.ts";
import type { ObserveCommand } from "../../robot/command.ts";
import { canonicalDigest } from "../../std/canonical.ts";
import { isObject, type JsonObject, jsonBounds } from "../http/json.ts";
import {
  expectedStepFault,
  flag,
  horizonFault,
  inferenceStepsFault,
  instructionFault,
  noHandoff,
  observationIdFault,
  observationIdPattern,
  seedOf,
  servedModel,
  sessionIdFault,
} from "../robot/rules.ts";
import { readState } from "../robot/state.ts";
import type { FrameGroup } from "./frames.ts";

export type ActionsFormat = "json" | "f32";

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

/** Failures: `message_too_large`, which closes as long as no session is open. */
export function lengthFault(text: string, sessionOpen: boolean): Failure | undefined {
  if (!isTooLong(text)) return undefined;
  const message = `a text message has at most ${LIMITS.socketTextCharsMax} characters; frames are binary messages`;
  return new Failure(sessionOpen ? ROBOT.message_too_large : ROBOT.socket_overflow, message);
}

/** Whether the text has more characters (code points) than a message may have. */
function isTooLong(text: string): boolean {
  const max = LIMITS.socketTextCharsMax;
  if (text.length <= max || text.length > 2 * max) return text.length > max;
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars > max;
}

/** The `observation_id` that an error may repeat. */
export function echoedId({ observation_id: id }: JsonObject): string | undefined {
  return typeof id === "string" && observationIdPattern.test(id) ? id : undefined;
}

/** A `session.open` after its checks. */
export interface Opening {
  readonly served: Served;
  readonly instruction: string;
  readonly sessionId: string | undefined;
  /** Rows of each chunk, where an observation does not say otherwise. */
  readonly rows: number;
  readonly seed: number;
  readonly format: ActionsFormat;
}

export function readOpening(body: JsonObject, catalog: Catalog): Opening | Failure {
  const fields = fieldsOf(body);
  const served = servedModel(fields, catalog);
  if (served instanceof Failure) return served;
  const text = fields.optional("instruction");
  const instruction = typeof text === "string" ? text : "";
  const seed = seedOf(fields);
  const format = fields.optional("actions_format") ?? "json";
  const failure =
    instructionFault(served, instruction, "instruction") ??
    flag(fields, "handoff") ??
    (seed instanceof Failure ? seed : undefined) ??
    formatFault(format) ??
    noHandoff(fields) ??
    sessionIdFault(fields) ??
    controlsFault(fields, served);
  if (failure) return failure;
  return {
    served,
    instruction,
    sessionId: fields.optional("session_id") as string | undefined,
    rows: (fields.optional("action_horizon") as number | undefined) ?? served.manifest.action.rows,
    seed: Number(seed),
    format: format as ActionsFormat,
  };
}

function formatFault(format: unknown): Failure | undefined {
  if (format === "json" || format === "f32") return undefined;
  return new Failure(ROBOT.invalid_parameter, 'actions_format must be "json" or "f32"', { param: "actions_format" });
}

function controlsFault(fields: Fields, { manifest }: Served): Failure | undefined {
  return horizonFault(fields, manifest.action.rows) ?? inferenceStepsFault(fields);
}

/** An `observation` of an open session after its checks, with the frames that it took. */
export function readObservation(
  body: JsonObject,
  session: Opening & { readonly sessionId: string },
  frames: FrameGroup,
): ObserveCommand | Failure {
  const fields = fieldsOf(body);
  const state = readState(body.robot_state, session.served.manifest.state.kind);
  if (state instanceof Failure) return state;
  const failure = controlsFault(fields, session.served) ?? expectedStepFault(fields) ?? observationIdFault(fields);
  if (failure) return failure;
  const id = fields.optional("observation_id") as string | undefined;
  const content = () => ({ observation: body, frames: frames.digests });
  return {
    served: session.served,
    instruction: session.instruction,
    frames,
    state,
    sessionId: session.sessionId,
    observation: id === undefined ? undefined : { id, digest: canonicalDigest("socket", content()) },
    expectedStep: fields.optional("expected_step") as number | undefined,
    rows: (fields.optional("action_horizon") as number | undefined) ?? session.rows,
    seed: session.seed,
  };
}

interface Fields {
  optional(name: string): unknown;
}

function fieldsOf(body: JsonObject): Fields {
  return { optional: (name) => body[name] ?? undefined };
}
