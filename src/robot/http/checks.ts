/**
 * The checks of `POST /v1/chat/completions`, in the order of the specification's error table with the contract's insertions.
 * The first list is for every request, the second for requests with image parts.
 */

import { bodySchema, type Check, firstFailure } from "../../http/check.ts";
import { LongText } from "../../http/found-body.ts";
import { isObject, type JsonObject } from "../../http/json.ts";
import { LIMITS } from "../../limits.ts";
import { present } from "../../std/assert.ts";
import { Failure } from "../../std/failure.ts";
import type { Catalog, Served } from "../catalog.ts";
import * as check from "../checks.ts";
import { jpegSizeFault, startsAsJpeg } from "../checks.ts";
import type { ObserveCommand } from "../command.ts";
import { ROBOT } from "../errors.ts";
import { BodyFrames, type FrameImage } from "../frames.ts";
import { FIELDS, OBSERVATION, observedMessages, PREFIX, QUESTION, questionMessages } from "./fields.ts";

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

interface ImagePart {
  /** Where the URL stands in the body, for `param`. */
  readonly param: string;
  readonly url: unknown;
}

/** Of a large body, a long text is read only where it must be. */
type Text = string | LongText;

interface Content {
  readonly texts: readonly Text[];
  readonly images: readonly ImagePart[];
}

export class ChatDraft extends check.ModelDraft {
  messages: readonly unknown[] = [];
  userIndex = 0;
  parts: Content = { texts: [], images: [] };
  images: readonly FrameImage[] = [];

  get withImages(): boolean {
    return this.parts.images.length > 0;
  }
}

function messages(draft: ChatDraft): Failure | undefined {
  const { messages } = draft.body;
  if (!Array.isArray(messages) || messages.length === 0) {
    return new Failure(ROBOT.messages_missing, "messages must be an array of at least one message", {
      param: "messages",
    });
  }
  draft.messages = messages;
  return undefined;
}

/** The last one. */
function userMessage(draft: ChatDraft): Failure | undefined {
  draft.userIndex = draft.messages.findLastIndex((message) => isObject(message) && message.role === "user");
  if (draft.userIndex >= 0) return undefined;
  const message = 'no message has the role "user"; send instruction and frames in one';
  return new Failure(ROBOT.no_user_message, message, { param: "messages" });
}

function content(draft: ChatDraft): Failure | undefined {
  const message = draft.messages[draft.userIndex];
  const parts = readContent(isObject(message) ? message.content : undefined, `messages[${draft.userIndex}].content`);
  if (parts instanceof Failure) return parts;
  draft.parts = parts;
  return undefined;
}

function images(draft: ChatDraft): Failure | undefined {
  const images = readImages(draft.parts.images);
  if (images instanceof Failure) return images;
  draft.images = images;
  return undefined;
}

/** Text parts are joined by a line break and compared exactly later on. */
function instruction(draft: ChatDraft): Failure | undefined {
  // A description reads no text.
  if (!draft.withImages) return undefined;
  const { texts } = draft.parts;
  const param = `messages[${draft.userIndex}].content`;
  const most = draft.model.model?.instructionBytesMax ?? LIMITS.instructionCharsMax;
  // A character is a byte of UTF-8 or more.
  if (texts.reduce((length, text) => length + text.length, texts.length - 1) > most) {
    return texts.every(isBlank) ? check.noInstruction(param) : check.longInstruction(param);
  }
  draft.instruction = texts.join("\n");
  return check.instruction(draft, param);
}

function isBlank(text: Text): boolean {
  return typeof text === "string" ? text.trim() === "" : text.isBlank;
}

function isText(value: unknown): value is Text {
  return typeof value === "string" || value instanceof LongText;
}

function sessionMissing(draft: ChatDraft): Failure | undefined {
  const needed = draft.withImages && draft.model.manifest.stateful;
  if (!needed || draft.optional("session_id") !== undefined) return undefined;
  const message = "this model remembers its episode; send a session_id of your choice with images";
  return new Failure(ROBOT.session_missing, message, { param: "session_id" });
}

/** Reads the parts. Failures: `invalid_content`, `invalid_content_part`. */
function readContent(content: unknown, param: string): Content | Failure {
  if (isText(content)) return { texts: [content], images: [] };
  if (!Array.isArray(content)) {
    return new Failure(ROBOT.invalid_content, "content must be a text or an array of text and image_url parts", {
      param,
    });
  }
  const texts: Text[] = [];
  const images: ImagePart[] = [];
  for (const [index, part] of content.entries()) {
    const at = `${param}[${index}]`;
    if (!isObject(part) || (part.type !== "text" && part.type !== "image_url")) {
      return new Failure(ROBOT.invalid_content_part, 'each part must be an object of type "text" or "image_url"', {
        param: at,
      });
    }
    if (part.type === "image_url") {
      images.push({ param: `${at}.image_url.url`, url: isObject(part.image_url) ? part.image_url.url : undefined });
    } else if (isText(part.text)) {
      texts.push(part.text);
    } else {
      return new Failure(ROBOT.invalid_content_part, "the text of a text part must be a string", {
        param: `${at}.text`,
      });
    }
  }
  return { texts, images };
}

const FORMAT = `send '${PREFIX}' followed by the base64 of a JPEG file`;

/**
 * One rule after another over all images, in the order of the error table; sizes come from lengths, before anything is decoded.
 * Failures: `invalid_image_url`, `image_too_large`, `unsupported_image_format`.
 */
function readImages(parts: readonly ImagePart[]): FrameImage[] | Failure {
  for (const { url, param } of parts) {
    if (!isText(url)) {
      return new Failure(ROBOT.invalid_image_url, `the image's url must be a string; ${FORMAT}`, { param });
    }
  }
  for (const { url, param } of parts) {
    const failure = jpegSizeFault(decodedBytes(url), { param });
    if (failure) return failure;
  }
  const images: FrameImage[] = [];
  let foreign: Failure | undefined;
  for (const { url, param } of parts) {
    const jpeg = fileOf(url);
    if (jpeg === "foreign") {
      foreign ??= new Failure(ROBOT.unsupported_image_format, `the image is not a JPEG data URL; ${FORMAT}`, { param });
      continue;
    }
    if (!jpeg) {
      return new Failure(ROBOT.invalid_image_url, "the image is not valid base64 (RFC 4648, padded, no spaces)", {
        param,
      });
    }
    if (!startsAsJpeg(jpeg)) {
      foreign ??= new Failure(ROBOT.unsupported_image_format, `the image's bytes are no JPEG; ${FORMAT}`, { param });
    }
    images.push({ jpeg, param });
  }
  return foreign ?? images;
}

/** Size of the file in a data URL, from the length of its base64; 0 for other texts. */
function decodedBytes(url: unknown): number {
  if (url instanceof LongText) return url.jpeg?.bytes ?? 0;
  if (typeof url !== "string" || !url.startsWith(PREFIX)) return 0;
  const padding = url.endsWith("==") ? 2 : url.endsWith("=") ? 1 : 0;
  return Math.floor(((url.length - PREFIX.length - padding) * 3) / 4);
}

/** `foreign`: no data URL of a JPEG. Undefined: not base64. */
function fileOf(url: unknown): Uint8Array | "foreign" | undefined {
  if (url instanceof LongText) return url.jpeg ? url.jpeg.file : "foreign";
  return typeof url === "string" && url.startsWith(PREFIX) ? decode(url.slice(PREFIX.length)) : "foreign";
}

/** Strict: padded, no stray bits, and no white space, which `fromBase64` would skip. */
function decode(base64: string): Uint8Array | undefined {
  try {
    const bytes = Uint8Array.fromBase64(base64, { lastChunkHandling: "strict" });
    return Math.ceil(bytes.length / 3) * 4 === base64.length ? bytes : undefined;
  } catch {
    return undefined;
  }
}
