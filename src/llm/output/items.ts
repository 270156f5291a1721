/** Output items of a response, as the public Responses API has them. */

export type ItemStatus = "in_progress" | "completed" | "incomplete";

export interface TextPart {
  readonly type: "output_text";
  text: string;
  readonly annotations: readonly never[];
  readonly logprobs: readonly never[];
}

interface RefusalPart {
  readonly type: "refusal";
  refusal: string;
}

export interface Message {
  readonly type: "message";
  readonly id: string;
  readonly role: "assistant";
  status: ItemStatus;
  readonly content: (TextPart | RefusalPart)[];
  /** Only where the provider labels its messages. */
  readonly phase?: "commentary" | "final_answer";
}

export interface Reasoning {
  readonly type: "reasoning";
  readonly id: string;
  status: ItemStatus;
  readonly summary: { readonly type: "summary_text"; text: string }[];
  readonly content: { readonly type: "reasoning_text"; text: string }[];
  encrypted_content: string | null;
}

export interface FunctionCall {
  readonly type: "function_call";
  readonly id: string;
  readonly call_id: string;
  readonly name: string;
  arguments: string;
  status: ItemStatus;
}

export type OutputItem = Message | Reasoning | FunctionCall;

export type MessagePart = Message["content"][number];
export type ReasoningPart = Reasoning["content"][number];

export function textPart(text: string): TextPart {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

/** The text of all messages. */
export function outputText(output: readonly OutputItem[]): string {
  let text = "";
  for (const item of output) {
    if (item.type !== "message") continue;
    for (const part of item.content) if (part.type === "output_text") text += part.text;
  }
  return text;
}
