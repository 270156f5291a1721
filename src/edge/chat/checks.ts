/**
 * The checks of `POST /v1/chat/completions`, in the order of the specification's error table with the contract's
 * insertions. The first list stands for every request; the second for requests with image parts.
 */
import { Failure } from "../../error.ts";
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { canonicalDigest } from "../../std/canonical.ts";
import { bodySchema, type Check, firstFailure } from "../check.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Catalog } from "../service.ts";
import { lastUserMessage, readContent } from "./content.ts";
import { ChatDraft, type DescribeCommand, type IdentifiedObservation, type ObserveCommand } from "./draft.ts";
import { FIELDS, OBSERVATION, observedMessages, QUESTION, questionMessages } from "./fields.ts";
import { readImages } from "./images.ts";
import { integerInRange, isSessionId, observationIdPattern } from "./rules.ts";
import { readState } from "./state.ts";

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
  { field: ["stream", FIELDS.stream], run: (draft) => checkFlag(draft, "stream") },
  { field: ["handoff", FIELDS.handoff], run: (draft) => checkFlag(draft, "handoff") },
  {
    field: ["seed", FIELDS.seed],
    run: checkSeed,
  },
  {
    run: (draft) =>
      draft.body.handoff === true
        ? new Failure("handoff_unavailable", "this service hands no session over; leave handoff out or send false", {
            param: "handoff",
          })
        : undefined,
  },
  { run: checkSessionMissing },
  {
    field: ["session_id", FIELDS.session_id],
    run: (draft) => {
      const id = draft.optional("session_id");
      if (id === undefined || isSessionId(id)) return undefined;
      const message = `session_id must be 1 to ${LIMITS.sessionIdCharsMax} printable characters without surrounding spaces`;
      return new Failure("invalid_session_id", message, { param: "session_id" });
    },
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
    run: (draft) =>
      integerInRange(draft, "action_horizon", draft.model.manifest.action.rows, {
        invalid: "action_horizon_invalid",
        outOfRange: "action_horizon_out_of_range",
      }),
  },
  {
    field: ["num_inference_steps", FIELDS.num_inference_steps],
    run: (draft) =>
      integerInRange(draft, "num_inference_steps", LIMITS.inferenceStepsMax, {
        invalid: "num_inference_steps_invalid",
        outOfRange: "num_inference_steps_out_of_range",
      }),
  },
  {
    field: ["expected_step", FIELDS.expected_step],
    run: (draft) => {
      const step = draft.optional("expected_step");
      if (step === undefined || (Number.isInteger(step) && Number(step) >= 0)) return undefined;
      const message =
        "expected_step must be a whole number of at least 0; send the session's next step or leave it out";
      return new Failure("invalid_expected_step", message, { param: "expected_step" });
    },
  },
  {
    field: ["observation_id", FIELDS.observation_id],
    run: (draft) => {
      const id = draft.optional("observation_id");
      if (id === undefined || (typeof id === "string" && observationIdPattern.test(id))) return undefined;
      const message = `observation_id must be 1 to ${LIMITS.observationIdCharsMax} characters of A-Z a-z 0-9 . _ : -`;
      return new Failure("invalid_observation_id", message, { param: "observation_id" });
    },
  },
];

/** The two forms of this route's body, for people and programs; the lists above decide. */
export const observationSchema = bodySchema(OBSERVATION, EVERY_REQUEST, WITH_IMAGES);
export const questionSchema = bodySchema(QUESTION, EVERY_REQUEST, [{ field: ["messages", questionMessages] }]);

/** A parsed body to a command, or the first failure in the order of the table. */
export function readChat(body: JsonObject, catalog: Catalog): DescribeCommand | ObserveCommand | Failure {
  const draft = new ChatDraft(body, catalog);
  const failure = firstFailure(EVERY_REQUEST, draft);
  if (failure) return failure;
  if (!draft.withImages) return { kind: "describe", served: draft.model, stream: draft.stream };
  return firstFailure(WITH_IMAGES, draft) ?? observeCommand(draft);
}

/** After all checks passed. */
function observeCommand(draft: ChatDraft): ObserveCommand {
  return {
    kind: "observe",
    served: draft.model,
    instruction: draft.instruction,
    images: [...draft.images],
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
  const id = draft.optional("model");
  if (id === undefined || id === "") {
    return new Failure("model_missing", `model is missing; served: ${draft.catalog.ids.join(", ")}`, {
      param: "model",
    });
  }
  draft.served = typeof id === "string" ? draft.catalog.models.get(id) : undefined;
  if (draft.served) return undefined;
  if (!draft.catalog.known) return new Failure("engine_unavailable", "the service is starting; retry in a second");
  const message = `this model is not served; use one of: ${draft.catalog.ids.join(", ")}`;
  return new Failure("model_not_found", message, { param: "model" });
}

function checkMessages(draft: ChatDraft): Failure | undefined {
  const { messages } = draft.body;
  if (!Array.isArray(messages) || messages.length === 0) {
    return new Failure("messages_missing", "messages must be an array of at least one message", { param: "messages" });
  }
  draft.messages = messages;
  return undefined;
}

function checkUserMessage(draft: ChatDraft): Failure | undefined {
  const index = lastUserMessage(draft.messages);
  if (index === undefined) {
    return new Failure("no_user_message", 'no message has the role "user"; send instruction and frames in one', {
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
  if (draft.instruction.trim() === "") {
    return new Failure("instruction_missing", "images came without an instruction; add a text part", { param });
  }
  // The engine bounds its own work: a text that cannot fit is refused before it is tokenised.
  const tokens = draft.model.model?.measure({ instruction: draft.instruction });
  return tokens instanceof Failure ? new Failure(tokens.code, tokens.message, { param }) : undefined;
}

function checkFlag(draft: ChatDraft, name: "stream" | "handoff"): Failure | undefined {
  const value = draft.optional(name);
  if (value === undefined || typeof value === "boolean") return undefined;
  return new Failure("invalid_parameter", `${name} must be true or false`, { param: name });
}

function checkSeed(draft: ChatDraft): Failure | undefined {
  const seed = draft.optional("seed") ?? 0;
  if (!Number.isSafeInteger(seed) || Number(seed) < 0) {
    return new Failure("invalid_parameter", `seed must be a whole number from 0 to ${LIMITS.seedMax}`, {
      param: "seed",
    });
  }
  draft.seed = Number(seed);
  return undefined;
}

function checkSessionMissing(draft: ChatDraft): Failure | undefined {
  const needed = draft.withImages && draft.model.manifest.stateful;
  if (!needed || draft.optional("session_id") !== undefined) return undefined;
  return new Failure(
    "session_missing",
    "this model remembers its episode; send a session_id of your choice with images",
    {
      param: "session_id",
    },
  );
}
