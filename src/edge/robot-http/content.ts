/** The last user message: its text parts are the instruction, its image parts the camera frames. */
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { isObject } from "../http/json.ts";

export interface ImagePart {
  /** Where the URL stands in the body, for `param`. */
  readonly param: string;
  readonly url: unknown;
}

export interface Content {
  readonly texts: readonly string[];
  readonly images: readonly ImagePart[];
}

/** Index of the last user message; undefined when there is none. */
export function lastUserMessage(messages: readonly unknown[]): number | undefined {
  const index = messages.findLastIndex((message) => isObject(message) && message.role === "user");
  return index === -1 ? undefined : index;
}

/** Reads the parts. Failures: `invalid_content`, `invalid_content_part`. */
export function readContent(content: unknown, param: string): Content | Failure {
  if (typeof content === "string") return { texts: [content], images: [] };
  if (!Array.isArray(content)) {
    return new Failure(ROBOT.invalid_content, "content must be a text or an array of text and image_url parts", {
      param,
    });
  }
  const texts: string[] = [];
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
    } else if (typeof part.text === "string") {
      texts.push(part.text);
    } else {
      return new Failure(ROBOT.invalid_content_part, "the text of a text part must be a string", {
        param: `${at}.text`,
      });
    }
  }
  return { texts, images };
}
