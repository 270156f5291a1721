/** JSON bodies of the robot models and the language models, from their bytes to a command or a failure of the table. */
import { resolve } from "node:path";
import { jsonBounds, parseObject } from "../../../src/http/json.ts";
import { readRequest } from "../../../src/llm/checks.ts";
import { Failure } from "../../../src/std/failure.ts";
import { observation, type Stage, stage, vectorObservation } from "../../robot/stage.ts";
import { must, type Target } from "../target.ts";

const SRC = resolve(import.meta.dir, "../../../src");

/** A failure's words are for a client: no stack, no file path, no text of ours that means nothing. */
function mustBeSaid(failure: Failure): void {
  must(failure.status >= 400 && failure.status < 500, `${failure.code} is the caller's fault`);
  must(
    !/\b(undefined|NaN|\[object )|\/src\/|\.ts:/.test(failure.message.replace(/'[^']*'/g, "")),
    `said: ${failure.message}`,
  );
}

/** What the bytes are; the bounds must hold for whatever is parsed. */
function objectOf(input: Uint8Array) {
  const body = parseObject(input);
  if (typeof body === "string") return undefined;
  must(jsonBounds(input) === undefined, "inside the bounds");
  const [values, depth] = sizeOf(body);
  must(values <= 20_000 && depth <= 64, `${values} values, ${depth} levels`);
  return body;
}

function sizeOf(value: unknown): [values: number, depth: number] {
  if (typeof value !== "object" || value === null) return [1, 0];
  const inner = Object.values(value).map(sizeOf);
  return [1 + inner.reduce((sum, [values]) => sum + values, 0), 1 + Math.max(0, ...inner.map(([, depth]) => depth))];
}

const CHAT = JSON.stringify(
  observation({ session_id: "s", expected_step: 0, observation_id: "o", seed: 3, stream: false }),
);
const TALK = JSON.stringify({ model: "vendorB/molmoact2:yam", messages: [{ role: "user", content: "who are you?" }] });

const ARM = JSON.stringify(vectorObservation({ session_id: "s", observation_id: "o", action_horizon: 50 }));

let at: Promise<Stage> | undefined;

export const chat: Target = {
  name: "chat-bodies",
  guides: [
    `${SRC}/http/json.ts`,
    `${SRC}/robot/http/content.ts`,
    `${SRC}/robot/http/fields.ts`,
    `${SRC}/robot/state.ts`,
  ],
  seeds: [CHAT, ARM, TALK],
  words: [
    "null",
    "true",
    "[]",
    "{}",
    '""',
    "\\u0000",
    "\\ud800",
    "1e400",
    "-0",
    ",",
    ":",
    '"role":"user"',
    '"image_url"',
    "data:image/jpeg;base64,/9j/",
  ],
  async run(input) {
    objectOf(input);
    at ??= stage();
    const { chat: send, service, engine } = await at;
    const response = await send(Buffer.from(input).toString("latin1"));
    must(response.status === 200 || (response.status >= 400 && response.status < 500), `status ${response.status}`);
    const text = await response.text();
    must(response.headers.has("x-request-id"), "a request id");
    if (response.status !== 200) must(typeof JSON.parse(text).error.code === "string", "an error object");
    const outcome = response.status === 200 ? "answered" : JSON.parse(text).error;
    await Bun.sleep(0);
    const { ingress } = service.http;
    must(
      engine.framesHeld === 0 && engine.runsHeld === 0 && ingress.bytes === 0 && service.robot.admission.held === 0,
      "nothing is held",
    );
    return JSON.stringify([outcome.code, outcome.param, String(outcome.message).replace(/'[^']*'/g, "''")]);
  },
};

const ASK = JSON.stringify({
  model: "llm-a-5.3:superfast",
  input: [
    {
      role: "user",
      content: [
        { type: "input_text", text: "hi" },
        { type: "input_image", image_url: "data:image/png;base64,AAAA" },
      ],
    },
  ],
  tools: [{ type: "function", name: "f", parameters: { type: "object" } }],
  ...{
    tool_choice: "auto",
    text: { format: { type: "text" } },
    reasoning: { effort: "low" },
    metadata: { a: "b" },
    max_output_tokens: 5,
  },
});

export const responses: Target = {
  name: "responses-bodies",
  guides: ["checks", "fields", "request"].map((file) => `${SRC}/llm/${file}.ts`),
  seeds: [ASK, '{"model":"llm-a-5.3:superfast","input":"hi","stream":true}'],
  words: [
    "null",
    "[]",
    "{}",
    '"type":"',
    '"function_call_output"',
    '"reasoning"',
    '"json_schema"',
    "1e400",
    "-1",
    "\\ud800",
  ],
  run(input) {
    const body = objectOf(input);
    if (!body) return "no object";
    const request = readRequest(body, new Map());
    if (request instanceof Failure) {
      mustBeSaid(request);
      // An unknown field is named as the body has it.
      return request.message.replace(/'[^']*'/g, "''").replace(/^\S+: this field/, "this field");
    }
    return `read: ${Object.keys(request).join()}`;
  },
};
