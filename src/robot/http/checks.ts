/** The checks of `POST /v1/chat/completions`, in the order of the specification's error table with the contract's insertions. */
import { bodySchema, type Check, firstFailure } from "../../http/check.ts";
import type { JsonObject } from "../../http/json.ts";
import { present } from "../../std/assert.ts";
import { Failure } from "../../std/failure.ts";
import type { Catalog, Served } from "../catalog.ts";
import type { ObserveCommand } from "../command.ts";
import { ROBOT } from "../errors.ts";
import { BodyFrames } from "../frames.ts";
import { ChatDraft, messages, questionMessages } from "./content.ts";
import * as field from "./fields.ts";

const sessionMissing: Check<ChatDraft> = {
  run(draft) {
    const needed = draft.images.length > 0 && draft.model.manifest.stateful;
    if (!needed || draft.optional("session_id") !== undefined) return undefined;
    const message = "this model remembers its episode; send a session_id of your choice with images";
    return new Failure(ROBOT.session_missing, message, { param: "session_id" });
  },
};

/** The checks of a request without images, and the first ones of an observation. */
const EVERY_REQUEST: readonly Check<ChatDraft>[] = [
  field.model,
  messages,
  field.stream,
  field.handoff,
  field.seed,
  field.deadline,
  field.noHandoff,
  sessionMissing,
  field.sessionId,
];

const WITH_IMAGES: readonly Check<ChatDraft>[] = [
  field.robotState,
  field.horizon,
  field.inferenceSteps,
  field.expectedStep,
  field.observationId,
];

/** The two forms of this route's body, for people and programs; the lists above decide. */
export const observationSchema = bodySchema(
  {
    title: "Observation",
    description: "A request with image parts: the reply holds an action chunk.",
  },
  EVERY_REQUEST,
  WITH_IMAGES,
);
export const questionSchema = bodySchema(
  {
    title: "Question",
    description:
      "A request without image parts: the reply is the model's description in words: cameras in order, frames per camera, state " +
      "shape, rows, dt, action dim and space. It needs a key, costs nothing and touches no session; fields that only an " +
      "observation has are not looked at.",
  },
  EVERY_REQUEST,
  [questionMessages],
);

/** A request without images: the model describes itself. */
export interface DescribeCommand {
  readonly kind: "describe";
  readonly served: Served;
  readonly stream: boolean;
}

export interface ObserveRequest extends ObserveCommand {
  readonly kind: "observe";
  readonly stream: boolean;
}

/** A parsed body to a command, or the first failure in the order of the table. */
export function readChat(body: JsonObject, catalog: Catalog): DescribeCommand | ObserveRequest | Failure {
  const draft = new ChatDraft(body, catalog);
  const failure = firstFailure(EVERY_REQUEST, draft);
  if (failure) return failure;
  const { model: served, images, values } = draft;
  const stream = body.stream === true;
  if (images.length === 0) return { kind: "describe", served, stream };
  const refused = firstFailure(WITH_IMAGES, draft);
  if (refused) return refused;
  const { instruction = "", rows = served.manifest.action.rows, seed = 0 } = values;
  const state = present(values.state, "the checked robot_state");
  const frames = new BodyFrames(images);
  return { ...values, kind: "observe", served, instruction, frames, state, rows, seed, stream };
}
