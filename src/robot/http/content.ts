/** The `messages` of a chat request: the instruction and the camera frames of the last user message. */
import { type TSchema, Type } from "@sinclair/typebox";
import { tooLong } from "../../engine/fault.ts";
import type { Check } from "../../http/check.ts";
import { isObject } from "../../http/json.ts";
import { LongText } from "../../http/scanned-body.ts";
import { LIMITS } from "../../limits.ts";
import { Failure, type Row } from "../../std/failure.ts";
import { ROBOT } from "../errors.ts";
import { failureOf } from "../faults.ts";
import { type FrameImage, jpegSizeFault, startsAsJpeg } from "../frames.ts";
import { instructionFault, ModelDraft, noInstruction } from "./fields.ts";

const PREFIX = "data:image/jpeg;base64,";
/** Base64 of the three bytes that `startsAsJpeg` looks for. */
const START = "/9j/";
/** Groups of four, the last one padded, with no bit set that the padding discards. */
const GROUPS = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?";

/** What `readImages` accepts. */
const imageUrlSchema = Type.String({
  pattern: `^${PREFIX}${START}${GROUPS}$`,
  maxLength: PREFIX.length + Math.ceil(LIMITS.jpegBytesMax / 3) * 4,
  description:
    `\`${PREFIX}\` and the base64 (RFC 4648, padded, no line breaks) of a JPEG file. The file has at most ${LIMITS.jpegBytesMax} bytes ` +
    `and ${LIMITS.jpegEdgePxMax} pixels along an edge. It is baseline or progressive, 8 bits, grey or colour, not CMYK. ` +
    "A file of several scans, such as a progressive one, is refused if its pixels times its scans take too long to decode: " +
    "ten scans of 3840 x 2160 pass, and more scans of a smaller picture. EXIF is not read: rotate the pixels. " +
    "Frames of any size are resized as the model's bundle says.",
});

const TextPart = Type.Object(
  {
    type: Type.Literal("text"),
    text: Type.String({
      description:
        "The task instruction, the same in every request of a session, compared exactly. Several text parts are joined by " +
        "line breaks.",
    }),
  },
  { title: "Text part" },
);

const ImagePart = Type.Object(
  { type: Type.Literal("image_url"), image_url: Type.Object({ url: imageUrlSchema }) },
  { title: "Image part" },
);

/** Image parts, and at least one text part that is not blank. */
const ObservedContent = Type.Array(Type.Union([TextPart, ImagePart]), {
  description:
    "Text parts are the instruction, image parts the camera frames: camera by camera in the model's order, and within a " +
    "camera the oldest frame first. A session's first request sends the model's first number of frames per camera, a later " +
    "one the number that the previous chunk's `next_frames_per_camera` names. Text may stand anywhere among the images.",
  minItems: 2,
  allOf: [
    { contains: Type.Object({ type: Type.Literal("image_url") }) },
    { contains: Type.Object({ type: Type.Literal("text"), text: Type.String({ pattern: "\\S" }) }) },
  ],
});

const QuestionContent = Type.Union([Type.String(), Type.Array(TextPart)], {
  description: "Any text; it is not interpreted.",
});

const messagesSchema = (content: TSchema) =>
  Type.Array(Type.Unknown(), {
    minItems: 1,
    contains: Type.Object({ role: Type.Literal("user"), content }, { title: "User message" }),
    description:
      "Messages of `role` `system`, `user` or `assistant`. Only the last one of `role` `user` is read; what else stands in " +
      "the array may be anything. (JSON Schema cannot say `last`: this one asks for any such user message.)",
  });

export class ChatDraft extends ModelDraft {
  images: FrameImage[] = [];
}

export const messages: Check<ChatDraft> = {
  field: ["messages", messagesSchema(ObservedContent)],
  run(draft) {
    const { messages } = draft.body;
    if (!Array.isArray(messages) || messages.length === 0) {
      const message = "messages must be an array of at least one message";
      return new Failure(ROBOT.messages_missing, message, { param: "messages" });
    }
    const last = messages.findLastIndex((message) => isObject(message) && message.role === "user");
    if (last < 0) {
      const message = 'no message has the role "user"; send instruction and frames in one';
      return new Failure(ROBOT.no_user_message, message, { param: "messages" });
    }
    const param = `messages[${last}].content`;
    const content = readContent(messages[last].content, param);
    if (content instanceof Failure) return content;
    const images = readImages(content.images);
    if (images instanceof Failure) return images;
    draft.images = images;
    return images.length === 0 ? undefined : readInstruction(draft, content.texts, param);
  },
};

/** The form of `messages` in a question. */
export const questionMessages: Check<ChatDraft> = { ...messages, field: ["messages", messagesSchema(QuestionContent)] };

/** A long text of a large body is read only where it must be. */
type Text = string | LongText;

function isText(value: unknown): value is Text {
  return typeof value === "string" || value instanceof LongText;
}

interface ImagePart {
  /** The place of the URL in the body. */
  readonly param: string;
  readonly url: unknown;
}

interface Content {
  readonly texts: readonly Text[];
  readonly images: readonly ImagePart[];
}

function readContent(content: unknown, param: string): Content | Failure {
  if (isText(content)) return { texts: [content], images: [] };
  if (!Array.isArray(content)) {
    const message = "content must be a text or an array of text and image_url parts";
    return new Failure(ROBOT.invalid_content, message, { param });
  }
  const texts: Text[] = [];
  const images: ImagePart[] = [];
  for (const [index, part] of content.entries()) {
    const at = `${param}[${index}]`;
    if (!isObject(part) || (part.type !== "text" && part.type !== "image_url")) {
      const message = 'each part must be an object of type "text" or "image_url"';
      return new Failure(ROBOT.invalid_content_part, message, { param: at });
    }
    if (part.type === "image_url") {
      images.push({ param: `${at}.image_url.url`, url: isObject(part.image_url) ? part.image_url.url : undefined });
    } else if (isText(part.text)) {
      texts.push(part.text);
    } else {
      const message = "the text of a text part must be a string";
      return new Failure(ROBOT.invalid_content_part, message, { param: `${at}.text` });
    }
  }
  return { texts, images };
}

/** Joins the texts by line breaks; sessions compare the result exactly. */
function readInstruction(draft: ChatDraft, texts: readonly Text[], param: string): Failure | undefined {
  const most = draft.model.model?.instructionBytesMax ?? LIMITS.instructionCharsMax;
  // A character is a byte of UTF-8 or more.
  if (texts.reduce((length, text) => length + text.length, texts.length - 1) > most) {
    return texts.every(isBlank) ? noInstruction(param) : failureOf(tooLong(), param);
  }
  draft.values.instruction = texts.join("\n");
  return instructionFault(draft, param);
}

function isBlank(text: Text): boolean {
  return typeof text === "string" ? text.trim() === "" : text.isBlank;
}

const FORMAT = `send '${PREFIX}' followed by the base64 of a JPEG file`;

/**
 * One rule after another over all images, in the order of the error table; sizes come from lengths, before anything is decoded.
 * Failures: `invalid_image_url`, `image_too_large`, `unsupported_image_format`.
 */
function readImages(parts: readonly ImagePart[]): FrameImage[] | Failure {
  const failure = (row: Row, message: string, { param }: ImagePart) => new Failure(row, message, { param });
  const nameless = parts.find(({ url }) => !isText(url));
  if (nameless) return failure(ROBOT.invalid_image_url, `the image's url must be a string; ${FORMAT}`, nameless);
  for (const { url, param } of parts) {
    const tooLarge = jpegSizeFault(decodedBytes(url), { param });
    if (tooLarge) return tooLarge;
  }
  const images: FrameImage[] = [];
  let foreign: Failure | undefined;
  for (const part of parts) {
    const jpeg = fileOf(part.url);
    if (jpeg === undefined) {
      const message = "the image is not valid base64 (RFC 4648, padded, no spaces)";
      return failure(ROBOT.invalid_image_url, message, part);
    }
    if (jpeg === "foreign") {
      foreign ??= failure(ROBOT.unsupported_image_format, `the image is not a JPEG data URL; ${FORMAT}`, part);
    } else if (startsAsJpeg(jpeg)) {
      images.push({ jpeg, param: part.param });
    } else {
      foreign ??= failure(ROBOT.unsupported_image_format, `the image's bytes are no JPEG; ${FORMAT}`, part);
    }
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
