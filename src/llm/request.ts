/**
 * A request to a language model, each field once: what it may be, how it is documented, and what it becomes. Names and shapes are those of
 * the public Responses API, because most of it goes to the provider and into the response object as it came. A request can be stored as
 * JSON, for background jobs.
 */
import { Type } from "@sinclair/typebox";
import { LIMITS } from "../limits.ts";
import { nearest } from "../std/nearest.ts";
import {
  anyObject,
  defaulting,
  type Field,
  flag,
  list,
  mapped,
  matching,
  number,
  object,
  optional,
  type Read,
  type Reading,
  shortText,
  text,
  variants,
  whole,
  words,
} from "./fields.ts";
import { publicAddress } from "./image-address.ts";
import { objectOf } from "./json.ts";
import { isLlmId, LLM_IDS, type LlmId } from "./models.ts";

const TOOLS_MAX = 128;
const PAIRS_MAX = 16;
const KEY_CHARS_MAX = 64;
const VALUE_CHARS_MAX = 512;

const name = matching("^[A-Za-z0-9_-]{1,64}$", "1 to 64 of the characters A-Z a-z 0-9 _ -");
const callId = shortText(1, 64);
const value = shortText(0, VALUE_CHARS_MAX);
const jsonSchema = anyObject({ description: "A JSON Schema." });

const textPart = object({ text: text() }, ["annotations", "logprobs"]);

/** The service never fetches the image. What a host's name means is asked by the provider alone. */
const imageUrl: Field<string> = {
  schema: Type.String({
    pattern: "^(https:\\/\\/\\S+|data:image\\/[\\w.+-]+;base64,[A-Za-z0-9+\\/]+={0,2})$",
    description:
      "`data:image/…;base64,`, or, for models that take addresses, the `https:` address of a public host that needs no password.",
  }),
  read: (reading, given, at) => {
    const url = typeof given === "string" && !IMAGE_DATA.test(given) ? publicAddress(given) : given;
    if (typeof url === "string") return url;
    reading.bad(at, "expected a data:image/…;base64, URL, or the https: address of a public host without a password");
    return "";
  },
};

const IMAGE_DATA = /^data:image\/[\w.+-]+;base64,[A-Za-z0-9+/]+={0,2}$/;

const imagePart = object({ image_url: imageUrl, detail: optional(words("auto", "low", "high", "original")) });

const askedPart = variants(
  { input_text: textPart, input_image: imagePart },
  { output_text: "input_text", text: "input_text" },
);

const answeredPart = variants(
  { output_text: textPart, refusal: mapped(object({ refusal: text() }), (part) => ({ text: part.refusal })) },
  { input_text: "output_text", text: "output_text" },
);

export type Part = Read<typeof askedPart> | Read<typeof answeredPart>;

/** A text alone is one part. */
function content(part: Field<Part>): Field<readonly Part[]> {
  const parts = list(part, undefined, "a text or an array of parts");
  return {
    schema: Type.Union([Type.String(), parts.schema]),
    read: (reading, given, at) =>
      parts.read(reading, typeof given === "string" ? [{ type: "text", text: given }] : given, at),
  };
}

const asked = content(askedPart);
const answered = content(answeredPart);

const functionOutput: Field<string> = {
  schema: asked.schema,
  read: (reading, given, at) => {
    const parts = asked.read(reading, given, at);
    const image = parts.findIndex(({ type }) => type === "input_image");
    if (image >= 0) reading.bad(`${at}[${image}]`, "an image as the output of a function is not supported");
    return parts.map((part) => (part.type === "input_image" ? "" : part.text)).join("");
  },
};

const thoughts = <Type extends "summary_text" | "reasoning_text">(type: Type) =>
  defaulting(list(mapped(variants({ [type]: object({ text: text() }) }), (part) => part.text)), []);

/** An item that an earlier response had is taken as it was. */
const IGNORED = ["id", "status"];

const items = variants({
  message: object(
    {
      role: words("user", "system", "developer", "assistant"),
      content: { schema: Type.Union([asked.schema, answered.schema]), read: (_, given): unknown => given },
      phase: optional(words("commentary", "final_answer")),
    },
    IGNORED,
  ),
  function_call: object({ call_id: callId, name, arguments: text({ description: "JSON." }) }, IGNORED),
  function_call_output: object({ call_id: callId, output: functionOutput }, IGNORED),
  reasoning: object(
    {
      summary: thoughts("summary_text"),
      content: thoughts("reasoning_text"),
      encrypted_content: optional(text()),
    },
    IGNORED,
  ),
});

type Item = Read<typeof items>;
type Message = Extract<Item, { type: "message" }>;

export interface InputMessage extends Pick<Message, "type" | "role"> {
  readonly content: readonly Part[];
  readonly phase?: NonNullable<Message["phase"]>;
}

export type InputItem = InputMessage | Exclude<Item, Message>;

const inputItem: Field<InputItem> = {
  schema: items.schema,
  read: (reading, given, at) => {
    const said = objectOf(given);
    const untyped = said?.type === undefined && said?.role !== undefined;
    const item = items.read(reading, untyped ? { ...said, type: "message" } : given, at);
    if (item.type !== "message") return item;
    const { type, role, phase } = item;
    const own = role === "assistant";
    if (phase !== null && !own) reading.bad(`${at}.phase`, "only an assistant's message has one");
    const parts = (own ? answered : asked).read(reading, item.content, `${at}.content`);
    return { type, role, content: parts, ...(phase === null ? {} : { phase }) };
  },
};

const inputItems = list(inputItem, undefined, "a text or an array of items");

const input: Field<readonly InputItem[]> = {
  schema: Type.Union([Type.String(), inputItems.schema], {
    description:
      "What is asked, or the conversation so far. Absent, it is the empty text; then `instructions` is needed.",
  }),
  read: (reading, given, at) =>
    inputItems.read(reading, typeof given === "string" ? [{ role: "user", content: given }] : given, at),
};

const metadata: Field<Readonly<Record<string, string>>> = {
  schema: Type.Record(Type.String(), Type.String(), {
    description: `At most ${PAIRS_MAX} pairs, returned with the response.`,
  }),
  read: (reading, given, at) => {
    const pairs = Object.entries(anyObject().read(reading, given, at));
    if (pairs.length > PAIRS_MAX) reading.bad(at, `expected at most ${PAIRS_MAX} pairs`);
    if (pairs.some(([key]) => key.length > KEY_CHARS_MAX))
      reading.bad(at, `expected keys of at most ${KEY_CHARS_MAX} characters`);
    return Object.fromEntries(
      pairs.slice(0, PAIRS_MAX).map(([key, said]) => [key, defaulting(value, "").read(reading, said, `${at}.${key}`)]),
    );
  },
};

const model: Field<LlmId> = {
  schema: Type.String({ enum: [...LLM_IDS], description: "Exactly as written." }),
  read: (reading: Reading, given, at) => {
    if (typeof given === "string" && isLlmId(given)) return given;
    if (typeof given !== "string" || given === "") reading.bad(at, `expected one of ${LLM_IDS.join(", ")}`);
    else reading.bad(at, `there is no such language model; did you mean "${nearest(given.slice(0, 128), LLM_IDS)}"?`);
    return LLM_IDS[0];
  },
};

const format = variants({
  text: object({}),
  json_object: object({}),
  json_schema: object({ name, description: optional(text()), schema: jsonSchema, strict: optional(flag()) }),
});

export type TextFormat = Read<typeof format>;

const tool = variants({
  function: object({
    name,
    description: optional(text()),
    parameters: optional(jsonSchema),
    strict: optional(flag()),
  }),
});

const toolWord = words("auto", "none", "required");
const toolName = variants({ function: object({ name }) });

const toolChoice: Field<Read<typeof toolWord> | Read<typeof toolName>> = {
  schema: Type.Union([toolWord.schema, toolName.schema]),
  read: (reading, given, at) => (objectOf(given) ? toolName : toolWord).read(reading, given, at),
};

export const BODY = object(
  {
    model,
    previous_response_id: {
      schema: Type.Optional(Type.Null({ description: "No model supports another value." })),
      read: (reading, given, at): void => {
        if (given !== undefined && given !== null)
          reading.bad(at, "no model supports it; send the whole conversation as input");
      },
    },
    input: defaulting(input, []),
    instructions: optional(text()),
    tools: defaulting(list(tool, TOOLS_MAX), []),
    background: optional(flag({ description: "`true` is refused by `:superfast`, `false` by `:async` models." })),
    store: optional(
      flag({
        description:
          "`true` is refused by `:superfast`, `false` by `:async` models. With `false` only its key returns the response, for 24 hours.",
      }),
    ),
    stream: defaulting(flag({ default: false }), false),
    max_output_tokens: optional(
      whole(1, LIMITS.outputTokensMax, {
        description: "Default 8,192 for `llm-a-5.3:superfast`, 4,096 for the others.",
      }),
    ),
    temperature: optional(number(0, 2)),
    top_p: optional(number(0, 1)),
    tool_choice: defaulting(toolChoice, "auto"),
    parallel_tool_calls: optional(flag({ description: "Only with `tools`." })),
    text: defaulting(
      object({ format: defaulting(format, { type: "text" }), verbosity: optional(words("low", "medium", "high")) }),
      {},
    ),
    reasoning: defaulting(
      object({
        effort: optional(words("none", "minimal", "low", "medium", "high", "xhigh", "max")),
        summary: optional(words("auto", "concise", "detailed")),
      }),
      {},
    ),
    metadata: defaulting(metadata, {}),
    user: optional(value),
    safety_identifier: optional(value),
    prompt_cache_key: optional(value),
    truncation: optional(words("disabled")),
  },
  [],
  { title: "Request of a response", additionalProperties: false },
);

type Body = Read<typeof BODY>;

/** A request after all checks. */
export interface LlmRequest
  extends Omit<Body, "previous_response_id" | "background" | "truncation" | "max_output_tokens"> {
  readonly max_output_tokens: number;
}

/** The first image that is not sent as data, by its place in the request. */
export function imageByAddress({ input }: Pick<LlmRequest, "input">): string | undefined {
  for (const [index, item] of input.entries()) {
    const parts = item.type === "message" ? item.content : [];
    const place = parts.findIndex((part) => part.type === "input_image" && part.image_url.startsWith("https:"));
    if (place >= 0) return `input[${index}].content[${place}].image_url`;
  }
  return undefined;
}
