/** Fields of a request, each with what the provider of either protocol gets of it; and a conversation with every kind of item. */

export const TOOL = {
  type: "function",
  name: "add",
  description: "Adds.",
  parameters: { type: "object" },
  strict: true,
};
export const BARE = { type: "function", name: "noop" };
const SCHEMA = { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false };
export const FORMAT = { type: "json_schema", name: "answer", description: "One number.", schema: SCHEMA, strict: true };
const WHAT = { type: "input_text", text: "What?" };
const IMAGE = "data:image/png;base64,iVBORw0KGgo=";
export const user = (content: unknown) => [{ role: "user", content }];

/** What is sent, and what the provider gets of it by chat and by Responses; what is sent, where that is not said. */
export const FIELDS: Readonly<Record<string, readonly [sent: object, chat?: object, responses?: object]>> = {
  "input as a text": [
    { input: "Hi" },
    { messages: user("Hi") },
    { input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }] },
  ],
  instructions: [
    { instructions: "Be brief." },
    { messages: [{ role: "system", content: "Be brief." }, ...user("Say hello.")] },
  ],
  max_output_tokens: [{ max_output_tokens: 65_536 }, { max_tokens: 65_536 }],
  temperature: [{ temperature: 0 }],
  top_p: [{ top_p: 0.5 }],
  tools: [
    { tools: [TOOL, BARE] },
    { tools: [inChat(TOOL), inChat(BARE)], tool_choice: "auto" },
    { tools: [TOOL, { ...BARE, description: null, parameters: null, strict: null }], tool_choice: "auto" },
  ],
  "tool_choice by a word": [{ tools: [TOOL], tool_choice: "required" }, { tool_choice: "required" }],
  "tool_choice by a name": [
    { tools: [TOOL], tool_choice: { type: "function", name: "add" } },
    { tool_choice: { type: "function", function: { name: "add" } } },
  ],
  parallel_tool_calls: [{ tools: [TOOL], parallel_tool_calls: false }, { parallel_tool_calls: false }],
  "a JSON schema": [{ text: { format: FORMAT } }, { response_format: schemaInChat(FORMAT) }],
  "any JSON": [{ text: { format: { type: "json_object" } } }, { response_format: { type: "json_object" } }],
  verbosity: [{ text: { verbosity: "low" } }, { verbosity: "low" }],
  "reasoning.effort": [{ reasoning: { effort: "low" } }, { reasoning_effort: "low" }],
  "an image as data": [
    { input: user([WHAT, { type: "input_image", image_url: IMAGE, detail: "low" }]) },
    {
      messages: user([
        { ...WHAT, type: "text" },
        { type: "image_url", image_url: { url: IMAGE, detail: "low" } },
      ]),
    },
  ],
};

function inChat({ type, ...tool }: { readonly type: string }): object {
  return { type, function: tool };
}

function schemaInChat({ type, ...json_schema }: { readonly type: string }): object {
  return { type, json_schema };
}

export const CONVERSATION = [
  { role: "developer", content: "Be kind." },
  {
    role: "system",
    content: [
      { type: "input_text", text: "Be" },
      { type: "input_text", text: "brief." },
    ],
  },
  { type: "message", role: "user", content: "Add 1 and 2." },
  { type: "reasoning", id: "rs_9", summary: [], content: [{ type: "reasoning_text", text: "Easy." }] },
  {
    type: "message",
    id: "msg_9",
    status: "completed",
    role: "assistant",
    content: [{ type: "output_text", text: "Well,", annotations: [] }],
  },
  { type: "function_call", id: "fc_9", status: "completed", call_id: "c1", name: "add", arguments: '{"a":1}' },
  { type: "function_call", call_id: "c2", name: "noop", arguments: "" },
  { type: "function_call_output", call_id: "c1", output: "3" },
  {
    type: "function_call_output",
    call_id: "c2",
    output: [
      { type: "input_text", text: "no" },
      { type: "input_text", text: "thing" },
    ],
  },
  { role: "assistant", content: [{ type: "refusal", refusal: "I will not say it." }] },
  { role: "user", content: "Please." },
];

export const IN_CHAT = [
  { role: "system", content: "Be kind." },
  {
    role: "system",
    content: [
      { type: "text", text: "Be" },
      { type: "text", text: "brief." },
    ],
  },
  { role: "user", content: "Add 1 and 2." },
  {
    role: "assistant",
    content: "Well,",
    reasoning_content: "Easy.",
    tool_calls: [
      { id: "c1", type: "function", function: { name: "add", arguments: '{"a":1}' } },
      { id: "c2", type: "function", function: { name: "noop", arguments: "" } },
    ],
  },
  { role: "tool", tool_call_id: "c1", content: "3" },
  { role: "tool", tool_call_id: "c2", content: "nothing" },
  { role: "assistant", content: "", refusal: "I will not say it." },
  { role: "user", content: "Please." },
];
