/**
 * The checks of `POST /v1/chat/completions`, in the order of the specification's error table with the contract's
 * insertions. The first list stands for every request; the second for requests with image parts.
 */
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import type { Catalog } from "../../robot/catalog.ts";
import type { IdentifiedObservation, ObserveCommand } from "../../robot/command.ts";
import { BodyFrames } from "../../robot/frames.ts";
import { present } from "../../std/assert.ts";
import { canonicalDigest } from "../../std/canonical.ts";
import { bodySchema, type Check, firstFailure } from "../http/check.ts";
import { isObject, type JsonObject } from "../http/json.ts";
import {
  expectedStepFault,
  flag,
  horizonFault,
  inferenceStepsFault,
  instructionFault,
  noHandoff,
  observationIdFault,
  seedOf,
  servedModel,
  sessionIdFault,
} from "../robot/rules.ts";
import { readState } from "../robot/state.ts";
import { lastUserMessage, readContent } from "./content.ts";
import { ChatDraft, type DescribeCommand } from "./draft.ts";
import { FIELDS, OBSERVATION, observedMessages, QUESTION, questionMessages } from "./fields.ts";
import { readImages } from "./images.ts";

/** Up to `invalid_session_id`: all that a description needs. */
const EVERY_REQUEST: readonly Check<ChatDraft>[] = [
  { field: ["model", FIELDS.model], run: checkModel },
  { field: ["messages", observedMessages], run: checkMessages },
  { run: checkUserMessage },
  {
    run: (draft) => {
      const message = draft.messages[draft.userIndex];
      const content = isObject(message) ? message.content : undefined;
      return draft.keep(readContent(content, `messages[${draft.userIndex}].content`), (read) => {
        draft.content = read;
      });
    },
  },
  {
    run: (draft) =>
      draft.keep(readImages(draft.content.images), (read) => {
        draft.images = read;
      }),
  },
  { run: checkInstruction },
  { field: ["stream", FIELDS.stream], run: (draft) => flag(draft, "stream") },
  { field: ["handoff", FIELDS.handoff], run: (draft) => flag(draft, "handoff") },
  {
    field: ["seed", FIELDS.seed],
    run: (draft) =>
      draft.keep(seedOf(draft), (read) => {
        draft.seed = read;
      }),
  },
  { run: noHandoff },
  { run: checkSessionMissing },
  {
    field: ["session_id", FIELDS.session_id],
    run: sessionIdFault,
  },
];

const WITH_IMAGES: readonly Check<ChatDraft>[] = [
  {
    field: ["robot_state", FIELDS.robot_state],
    run: (draft) =>
      draft.keep(readState(draft.body.robot_state, draft.model.manifest.state.kind), (read) => {
        draft.state = read;
      }),
  },
  {
    field: ["action_horizon", FIELDS.action_horizon],
    run: (draft) => horizonFault(draft, draft.model.manifest.action.rows),
  },
  {
    field: ["num_inference_steps", FIELDS.num_inference_steps],
    run: inferenceStepsFault,
  },
  {
    field: ["expected_step", FIELDS.expected_step],
    run: expectedStepFault,
  },
  {
    field: ["observation_id", FIELDS.observation_id],
    run: observationIdFault,
  },
];

/** The two forms of this route's body, for people and programs; the lists above decide. */
export const observationSchema = bodySchema(OBSERVATION, EVERY_REQUEST, WITH_IMAGES);
export const questionSchema = bodySchema(QUESTION, EVERY_REQUEST, [{ field: ["messages", questionMessages] }]);

/** A parsed body to a command, or the first failure in the order of the table. */
export function readChat(body: JsonObject, catalog: Catalog): DescribeCommand | ObserveRequest | Failure {
  const draft = new ChatDraft(body, catalog);
  const failure = firstFailure(EVERY_REQUEST, draft);
  if (failure) return failure;
  if (!draft.withImages) return { kind: "describe", served: draft.model, stream: draft.stream };
  return firstFailure(WITH_IMAGES, draft) ?? observeCommand(draft);
}

export interface ObserveRequest extends ObserveCommand {
  readonly kind: "observe";
  readonly stream: boolean;
}

/** After all checks passed. */
function observeCommand(draft: ChatDraft): ObserveRequest {
  return {
    kind: "observe",
    served: draft.model,
    instruction: draft.instruction,
    frames: new BodyFrames([...draft.images]),
    state: present(draft.state, "the checked robot_state"),
    sessionId: draft.optional("session_id") as string | undefined,
    observation: identified(draft),
    expectedStep: draft.optional("expected_step") as number | undefined,
    rows: (draft.optional("action_horizon") as number | undefined) ?? draft.model.manifest.action.rows,
    seed: draft.seed,
    stream: draft.stream,
  };
}

/** The body is digested only where an id asks for it. */
function identified(draft: ChatDraft): IdentifiedObservation | undefined {
  const id = draft.optional("observation_id") as string | undefined;
  return id === undefined ? undefined : { id, digest: canonicalDigest("chat", draft.body) };
}

function checkModel(draft: ChatDraft): Failure | undefined {
  return draft.keep(servedModel(draft, draft.catalog), (read) => {
    draft.served = read;
  });
}

function checkMessages(draft: ChatDraft): Failure | undefined {
  const { messages } = draft.body;
  if (!Array.isArray(messages) || messages.length === 0) {
    return new Failure(ROBOT.messages_missing, "messages must be an array of at least one message", {
      param: "messages",
    });
  }
  draft.messages = messages;
  return undefined;
}

function checkUserMessage(draft: ChatDraft): Failure | undefined {
  const index = lastUserMessage(draft.messages);
  if (index === undefined) {
    return new Failure(ROBOT.no_user_message, 'no message has the role "user"; send instruction and frames in one', {
      param: "messages",
    });
  }
  draft.userIndex = index;
  return undefined;
}

/** Text parts are joined by a line break and compared exactly later on. */
function checkInstruction(draft: ChatDraft): Failure | undefined {
  draft.instruction = draft.content.texts.join("\n");
  if (!draft.withImages) return undefined;
  const param = `messages[${draft.userIndex}].content`;
  return instructionFault(draft.model, draft.instruction, param);
}

function checkSessionMissing(draft: ChatDraft): Failure | undefined {
  const needed = draft.withImages && draft.model.manifest.stateful;
  if (!needed || draft.optional("session_id") !== undefined) return undefined;
  return new Failure(
    ROBOT.session_missing,
    "this model remembers its episode; send a session_id of your choice with images",
    {
      param: "session_id",
    },
  );
}
