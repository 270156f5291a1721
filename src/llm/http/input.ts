/** The `input` of a request: a text, or items of the Responses API. Items that an earlier response had are taken as they were. */

import type { JsonObject } from "../../http/json.ts";
import type { CallItem, CallOutput, InputItem, InputMessage, Part, ReasoningItem } from "../request.ts";
import type { Reading } from "./reading.ts";

export function readInput(reading: Reading, value: unknown): InputItem[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [userMessage(value)];
  if (!Array.isArray(value)) {
    reading.bad("input", "expected a text or an array of items");
    return [];
  }
  const items: InputItem[] = [];
  for (const [index, given] of value.entries()) {
    // The first fault decides; the rest of a long input need not be read.
    if (reading.failure) break;
    const item = readItem(reading, given, `input[${index}]`);
    if (item) items.push(item);
  }
  return items;
}

export function userMessage(text: string): InputMessage {
  return { type: "message", role: "user", content: [{ type: "input_text", text }] };
}

function readItem(reading: Reading, value: unknown, at: string): InputItem | undefined {
  const given = reading.object(value, at);
  const type = given.type ?? (given.role === undefined ? undefined : "message");
  if (type === "message") return message(reading, given, at);
  if (type === "function_call") return call(reading, given, at);
  if (type === "function_call_output") return callOutput(reading, given, at);
  if (type === "reasoning") return reasoning(reading, given, at);
  reading.bad(`${at}.type`, 'expected "message", "function_call", "function_call_output" or "reasoning"');
  return undefined;
}

function message(reading: Reading, given: JsonObject, at: string): InputMessage {
  reading.known(given, at, ["type", "role", "content", "id", "status", "phase"]);
  const role = reading.oneOf(given.role, `${at}.role`, ["user", "system", "developer", "assistant"]);
  if (role === null) reading.bad(`${at}.role`, "it is missing");
  const phase = reading.oneOf(given.phase, `${at}.phase`, ["commentary", "final_answer"]);
  if (phase !== null && role !== "assistant") reading.bad(`${at}.phase`, "only an assistant's message has one");
  const content = readContent(reading, given.content, `${at}.content`, role === "assistant");
  return { type: "message", role: role ?? "user", content, ...(phase === null ? {} : { phase }) };
}

function readContent(reading: Reading, value: unknown, at: string, ofAssistant: boolean): Part[] {
  const type = ofAssistant ? "output_text" : "input_text";
  if (typeof value === "string") return [{ type, text: value }];
  const parts = reading.array(value, at);
  return parts.flatMap((part, index) =>
    readPart(reading, reading.object(part, `${at}[${index}]`), `${at}[${index}]`, ofAssistant),
  );
}

function readPart(reading: Reading, given: JsonObject, at: string, ofAssistant: boolean): Part[] {
  const { type } = given;
  if (type === "input_text" || type === "output_text" || type === "text") {
    reading.known(given, at, ["type", "text", "annotations", "logprobs"]);
    return [{ type: ofAssistant ? "output_text" : "input_text", text: reading.text(given.text, `${at}.text`) }];
  }
  if (type === "refusal" && ofAssistant) {
    reading.known(given, at, ["type", "refusal"]);
    return [{ type: "refusal", text: reading.text(given.refusal, `${at}.refusal`) }];
  }
  if (type === "input_image" && !ofAssistant) {
    reading.known(given, at, ["type", "image_url", "detail"]);
    const image_url = reading.text(given.image_url, `${at}.image_url`);
    if (!/^(https?:\/\/\S+|data:image\/[\w.+-]+;base64,[A-Za-z0-9+/]+={0,2})$/.test(image_url)) {
      reading.bad(`${at}.image_url`, "expected an http(s) address or a data:image/…;base64, URL");
    }
    const detail = reading.oneOf(given.detail, `${at}.detail`, ["auto", "low", "high"]);
    return [{ type: "input_image", image_url, detail }];
  }
  const words = ofAssistant ? '"output_text" or "refusal"' : '"input_text" or "input_image"';
  reading.bad(`${at}.type`, `expected ${words}`);
  return [];
}

function call(reading: Reading, given: JsonObject, at: string): CallItem {
  reading.known(given, at, ["type", "id", "call_id", "name", "arguments", "status"]);
  return {
    type: "function_call",
    call_id: callId(reading, given, at),
    name: reading.name(given.name, `${at}.name`),
    arguments: reading.text(given.arguments, `${at}.arguments`),
  };
}

function callOutput(reading: Reading, given: JsonObject, at: string): CallOutput {
  reading.known(given, at, ["type", "id", "call_id", "output", "status"]);
  const { output } = given;
  const call_id = callId(reading, given, at);
  if (!Array.isArray(output))
    return { type: "function_call_output", call_id, output: reading.text(output, `${at}.output`) };
  const parts = readContent(reading, output, `${at}.output`, false);
  const images = parts.findIndex((part) => part.type === "input_image");
  if (images >= 0) reading.bad(`${at}.output[${images}]`, "an image as the output of a function is not supported");
  return {
    type: "function_call_output",
    call_id,
    output: parts.map((part) => (part.type === "input_image" ? "" : part.text)).join(""),
  };
}

function callId(reading: Reading, given: JsonObject, at: string): string {
  const id = reading.text(given.call_id, `${at}.call_id`);
  if (id === "" || id.length > 64) reading.bad(`${at}.call_id`, "expected 1 to 64 characters");
  return id;
}

function reasoning(reading: Reading, given: JsonObject, at: string): ReasoningItem {
  reading.known(given, at, ["type", "id", "summary", "content", "encrypted_content", "status"]);
  const texts = (name: "summary" | "content", type: string) =>
    reading.array(given[name] ?? [], `${at}.${name}`).map((part, index) => {
      const place = `${at}.${name}[${index}]`;
      const said = reading.object(part, place);
      if (said.type !== type) reading.bad(`${place}.type`, `expected "${type}"`);
      return reading.text(said.text, `${place}.text`);
    });
  return {
    type: "reasoning",
    summary: texts("summary", "summary_text"),
    content: texts("content", "reasoning_text"),
    encrypted_content: reading.optionalText(given.encrypted_content, `${at}.encrypted_content`),
  };
}
