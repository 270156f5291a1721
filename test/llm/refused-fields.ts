/** Bodies that are refused, each with the field at fault. */
import type { Refusable } from "../../src/config/llm.ts";
import { JOB, LIVE } from "./stage.ts";

const tool = (more = {}) => ({ type: "function", name: "add", ...more });
const say = (content: unknown, more = {}) => ({ input: [{ role: "user", content, ...more }] });
const text = "Hi";

/** Each has the `param` of its refusal as its name; a number behind it tells two of one field apart. */
export const REFUSED: Readonly<Record<string, object>> = {
  previous_response_id: { previous_response_id: "resp_1" },
  conversation: { conversation: "conv_1" },
  include: { include: [] },
  prompt: { prompt: { id: "p" } },
  max_tool_calls: { max_tool_calls: 1 },
  service_tier: { service_tier: "auto" },
  stream_options: { stream_options: {} },
  top_logprobs: { top_logprobs: 0 },
  frequency_penalty: { frequency_penalty: 0 },
  context_management: { context_management: [] },
  prompt_cache_retention: { prompt_cache_retention: "24h" },
  messages: { messages: [] },
  max_tokens: { max_tokens: 5 },
  response_format: { response_format: { type: "json_object" } },
  n: { n: 1 },
  seed: { seed: 1 },
  stop: { stop: "x" },
  "a b": { "a b": false },
  stream: { stream: "true" },
  "max_output_tokens 1": { max_output_tokens: 0 },
  "max_output_tokens 2": { max_output_tokens: 65_537 },
  "max_output_tokens 3": { max_output_tokens: 1.5 },
  "max_output_tokens 4": { max_output_tokens: "5" },
  "temperature 1": { temperature: 2.01 },
  "temperature 2": { temperature: -1 },
  top_p: { top_p: 1.1 },
  instructions: { instructions: ["Hi"] },
  user: { user: "u".repeat(513) },
  safety_identifier: { safety_identifier: 1 },
  prompt_cache_key: { prompt_cache_key: {} },
  "truncation 1": { truncation: "auto" },
  "truncation 2": { truncation: true },
  "metadata 1": { metadata: [] },
  "metadata 2": { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, ""])) },
  "metadata 3": { metadata: { ["k".repeat(65)]: "" } },
  "metadata.a": { metadata: { a: 1 } },
  "metadata.b": { metadata: { b: "x".repeat(513) } },
  "parallel_tool_calls 1": { parallel_tool_calls: "no" },
  "parallel_tool_calls 2": { parallel_tool_calls: true },
  "parallel_tool_calls 3": { parallel_tool_calls: false, tools: [] },
  "tools 1": { tools: {} },
  "tools 2": { tools: Array.from({ length: 129 }, (_, n) => tool({ name: `t${n}` })) },
  "tools[0].type 1": { tools: [{ type: "web_search" }] },
  "tools[0].type 2": { tools: [{ type: "custom", name: "x" }] },
  "tools[0].name 1": { tools: [{ type: "function" }] },
  "tools[0].name 2": { tools: [tool({ name: "with space" })] },
  "tools[0].name 3": { tools: [tool({ name: "n".repeat(65) })] },
  "tools[1].name": { tools: [tool(), tool()] },
  "tools[0].parameters": { tools: [tool({ parameters: "{}" })] },
  "tools[0].strict": { tools: [tool({ strict: 1 })] },
  "tools[0].defer_loading": { tools: [tool({ defer_loading: true })] },
  "tools[0].function": { tools: [tool({ function: { name: "add" } })] },
  tool_choice: { tools: [tool()], tool_choice: "any" },
  "tool_choice.type": { tools: [tool()], tool_choice: { type: "web_search" } },
  "tool_choice.name": { tools: [tool()], tool_choice: { type: "function", name: "sub" } },
  "text 1": { text: "json" },
  "text.verbosity": { text: { verbosity: "loud" } },
  "text.format": { text: { format: "json" } },
  "text.format.type 1": { text: { format: {} } },
  "text.format.type 2": { text: { format: { type: "xml" } } },
  "text.format.schema": { text: { format: { type: "json_schema", name: "n" } } },
  "text.format.name": { text: { format: { type: "json_schema", schema: {} } } },
  "text.format.strict": { text: { format: { type: "json_schema", name: "n", schema: {}, strict: "yes" } } },
  "text.format.grammar": { text: { format: { type: "text", grammar: "x" } } },
  "reasoning.effort": { reasoning: { effort: "huge" } },
  "reasoning.summary 1": { reasoning: { summary: "long" } },
  "reasoning.generate_summary": { reasoning: { generate_summary: "auto" } },
  "input 1": { input: null },
  "input 2": { input: 5 },
  "input 3": { input: [] },
  "input[0]": { input: ["Hi"] },
  "input[0].type 1": { input: [{}] },
  "input[0].type 2": { input: [{ type: "item_reference", id: "msg_1" }] },
  "input[0].type 3": { input: [{ type: "web_search_call" }] },
  "input[0].role 1": { input: [{ type: "message", content: text }] },
  "input[0].role 2": { input: [{ role: "tool", content: text }] },
  "input[0].content 1": { input: [{ role: "user" }] },
  "input[0].content 2": { input: [{ role: "user", content: null }] },
  "input[0].name": say(text, { name: "Bob" }),
  "input[0].phase": say(text, { phase: "commentary" }),
  "input[0].content[0]": say(["Hi"]),
  "input[0].content[0].type 1": say([{ type: "input_file", file_id: "f" }]),
  "input[0].content[0].type 2": say([{ type: "input_audio" }]),
  "input[0].content[0].type 3": say([{ type: "refusal", refusal: "no" }]),
  "input[0].content[0].type 4": { input: [{ role: "assistant", content: [{ type: "input_image", image_url: "x" }] }] },
  "input[0].content[0].text": say([{ type: "input_text" }]),
  "input[0].content[0].image_url 1": say([{ type: "input_image" }]),
  "input[0].content[0].image_url 2": say([{ type: "input_image", image_url: "file:///etc/passwd" }]),
  "input[0].content[0].image_url 3": say([{ type: "input_image", image_url: "data:text/html;base64,AAAA" }]),
  "input[0].content[0].image_url 4": say([{ type: "input_image", image_url: "data:image/png;base64,A B" }]),
  "input[0].content[0].file_id": say([{ type: "input_image", file_id: "f", image_url: "https://example.org/a.png" }]),
  "input[0].content[0].detail": say([{ type: "input_image", image_url: "https://example.org/a.png", detail: "max" }]),
  "input[1].call_id 1": {
    input: [
      { role: "user", content: text },
      { type: "function_call", name: "a", arguments: "" },
    ],
  },
  "input[0].call_id 2": { input: [{ type: "function_call_output", call_id: "c".repeat(65), output: "" }] },
  "input[0].arguments": { input: [{ type: "function_call", call_id: "c", name: "a", arguments: {} }] },
  "input[0].output 1": { input: [{ type: "function_call_output", call_id: "c" }] },
  "input[0].output[0] 2": {
    input: [
      {
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_image", image_url: "https://example.org/a.png" }],
      },
    ],
  },
  "input[0].summary[0].type": { input: [{ type: "reasoning", summary: [{ type: "text", text: "x" }] }] },
};

const made = (call_id: string) => ({ type: "function_call", call_id, name: "add", arguments: "{}" });
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "3" });
const thought = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] };
const own = { role: "assistant", content: "Well," };
const asked = { role: "user", content: "And?" };

/** Conversations, each under the field at fault: every output stands directly behind the turn of its call. */
export const TURNS: Readonly<Record<string, readonly object[]>> = {
  "input[0].call_id 1": [output("a")],
  "input[1].call_id 2": [asked, output("a"), made("a")],
  "input[2].call_id 3": [made("a"), output("a"), output("a")],
  "input[1].call_id 4": [made("a"), output("b")],
  "input[2].call_id 5": [made("a"), made("b"), made("a")],
  "input[3].call_id 6": [made("a"), output("a"), asked, output("a")],
  "input[0] 1": [made("a")],
  "input[0] 2": [made("a"), asked, output("a")],
  "input[1] 3": [made("a"), made("b"), output("a"), asked],
  "input[1] 4": [made("a"), made("b"), output("a"), made("c"), output("b"), output("c")],
  "input[1] 5": [made("a"), made("b"), output("a"), own, output("b")],
  "input[0] 6": [made("a"), { role: "developer", content: "Now." }, output("a")],
};

export const ORDERLY: Readonly<Record<string, readonly object[]>> = {
  "outputs in any order": [made("a"), made("b"), output("b"), output("a"), asked],
  "one call after the other": [made("a"), output("a"), made("a"), output("a")],
  "words and thoughts of a turn between its calls": [
    thought,
    made("a"),
    own,
    thought,
    made("b"),
    output("a"),
    output("b"),
  ],
};

/** That of one kind of models alone. */
export const OF_KIND: readonly (readonly [param: string, sent: object])[] = [
  ["background", { model: LIVE, background: true }],
  ["background", { model: JOB, background: false }],
  ["store", { model: LIVE, store: true }],
  ["store", { model: JOB, store: false }],
];

export const IN_CHAT: Readonly<Record<string, object>> = {
  "reasoning.summary": { reasoning: { summary: "auto" } },
  "input[0].phase": { input: [{ role: "assistant", phase: "commentary", content: "x" }] },
  "input[0].summary": { input: [{ type: "reasoning", summary: [{ type: "summary_text", text: "x" }] }] },
  "input[0].encrypted_content": { input: [{ type: "reasoning", summary: [], encrypted_content: "x" }] },
};

export const BY_TABLE: readonly (readonly [refused: Refusable, param: string, sent: object])[] = [
  ["images", "input[0].content", say([{ type: "input_image", image_url: "https://example.org/a.png" }])],
  ["tools", "tools", { tools: [tool()] }],
  ["tool_choice", "tool_choice", { tools: [tool()], tool_choice: "required" }],
  ["parallel_tool_calls", "parallel_tool_calls", { tools: [tool()], parallel_tool_calls: true }],
  ["text.format", "text.format", { text: { format: { type: "json_object" } } }],
  ["text.verbosity", "text.verbosity", { text: { verbosity: "low" } }],
  ["reasoning", "reasoning", { reasoning: { effort: "low" } }],
  ["temperature", "temperature", { temperature: 1 }],
  ["top_p", "top_p", { top_p: 1 }],
  ["user", "user", { user: "u" }],
  ["safety_identifier", "safety_identifier", { safety_identifier: "s" }],
  ["prompt_cache_key", "prompt_cache_key", { prompt_cache_key: "c" }],
];
