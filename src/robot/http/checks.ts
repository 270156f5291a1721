/**
 * The checks of `POST /v1/chat/completions`, in the order of the specification's error table with the contract's insertions.
 * The first list stands for every request; the second for requests with image parts.
 */

import { bodySchema, type Check, firstFailure } from "../../http/check.ts";
import type { JsonObject } from "../../http/json.ts";
import { present } from "../../std/assert.ts";
import type { Failure } from "../../std/failure.ts";
import type { Catalog, Served } from "../catalog.ts";
import * as check from "../checks/fields.ts";
import type { ObserveCommand } from "../command.ts";
import { BodyFrames } from "../frames.ts";
import { FIELDS, OBSERVATION, observedMessages, QUESTION, questionMessages } from "./fields.ts";
import { ChatDraft, content, images, instruction, messages, sessionMissing, userMessage } from "./message.ts";

/** Up to `invalid_session_id`: all that a description needs. */
const EVERY_REQUEST: readonly Check<ChatDraft>[] = [
  { field: ["model", FIELDS.model], run: check.model },
  { field: ["messages", observedMessages], run: messages },
  { run: userMessage },
  { run: content },
  { run: images },
  { run: instruction },
  { field: ["stream", FIELDS.stream], run: (draft) => check.flag(draft, "stream") },
  { field: ["handoff", FIELDS.handoff], run: (draft) => check.flag(draft, "handoff") },
  { field: ["seed", FIELDS.seed], run: check.seed },
  { field: ["deadline_ms", FIELDS.deadline_ms], run: check.deadline },
  { run: check.noHandoff },
  { run: sessionMissing },
  { field: ["session_id", FIELDS.session_id], run: check.sessionId },
];

const WITH_IMAGES: readonly Check<ChatDraft>[] = [
  { field: ["robot_state", FIELDS.robot_state], run: check.robotState },
  { field: ["action_horizon", FIELDS.action_horizon], run: check.horizon },
  { field: ["num_inference_steps", FIELDS.num_inference_steps], run: check.inferenceSteps },
  { field: ["expected_step", FIELDS.expected_step], run: check.expectedStep },
  { field: ["observation_id", FIELDS.observation_id], run: check.observationId },
];

/** The two forms of this route's body, for people and programs; the lists above decide. */
export const observationSchema = bodySchema(OBSERVATION, EVERY_REQUEST, WITH_IMAGES);
export const questionSchema = bodySchema(QUESTION, EVERY_REQUEST, [{ field: ["messages", questionMessages] }]);

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
  const stream = body.stream === true;
  if (!draft.withImages) return { kind: "describe", served: draft.model, stream };
  return firstFailure(WITH_IMAGES, draft) ?? observeRequest(draft, stream);
}

/** After all checks passed. */
function observeRequest(draft: ChatDraft, stream: boolean): ObserveRequest {
  const { model, instruction, sessionId, observationId, expectedStep, inferenceSteps, seed, deadlineMs } = draft;
  return {
    kind: "observe",
    served: model,
    instruction,
    frames: new BodyFrames([...draft.images]),
    state: present(draft.state, "the checked robot_state"),
    sessionId,
    observationId,
    expectedStep,
    rows: draft.rows ?? model.manifest.action.rows,
    inferenceSteps,
    seed,
    deadlineMs,
    stream,
  };
}
