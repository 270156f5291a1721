/**
 * A request to a language model after all checks, complete. Names and shapes are those of the public Responses API, because
 * most of it goes to the provider and into the response object as it came. It can be stored as JSON, for background jobs.
 */
import type { LlmId } from "./models.ts";

export interface LlmRequest {
  readonly model: LlmId;
  readonly input: readonly InputItem[];
  readonly instructions: string | null;
  readonly stream: boolean;
  readonly max_output_tokens: number;
  readonly temperature: number | null;
  readonly top_p: number | null;
  readonly tools: readonly FunctionTool[];
  readonly tool_choice: ToolChoice;
  readonly parallel_tool_calls: boolean | null;
  readonly text: TextOptions;
  readonly reasoning: ReasoningOptions;
  readonly metadata: Readonly<Record<string, string>>;
  readonly user: string | null;
  readonly safety_identifier: string | null;
  readonly prompt_cache_key: string | null;
}

type Role = "user" | "system" | "developer" | "assistant";

export type InputItem = InputMessage | CallItem | CallOutput | ReasoningItem;

export interface InputMessage {
  readonly type: "message";
  readonly role: Role;
  readonly content: readonly Part[];
  readonly phase?: "commentary" | "final_answer";
}

export type Part = TextPart | ImagePart;

/** `output_text` and `refusal` are parts of an assistant's message. */
interface TextPart {
  readonly type: "input_text" | "output_text" | "refusal";
  readonly text: string;
}

/** Never fetched by the service. */
interface ImagePart {
  readonly type: "input_image";
  /** An address, or the image as a data: URL. */
  readonly image_url: string;
  readonly detail: "auto" | "low" | "high" | null;
}

/** A call of a function that the model made earlier. */
export interface CallItem {
  readonly type: "function_call";
  readonly call_id: string;
  readonly name: string;
  readonly arguments: string;
}

/** What the function returned. */
export interface CallOutput {
  readonly type: "function_call_output";
  readonly call_id: string;
  readonly output: string;
}

/** What the model thought earlier. */
export interface ReasoningItem {
  readonly type: "reasoning";
  readonly summary: readonly string[];
  readonly content: readonly string[];
  readonly encrypted_content: string | null;
}

export interface FunctionTool {
  readonly type: "function";
  readonly name: string;
  readonly description: string | null;
  readonly parameters: Readonly<Record<string, unknown>> | null;
  readonly strict: boolean | null;
}

export type ToolChoice = "auto" | "none" | "required" | { readonly type: "function"; readonly name: string };

export interface TextOptions {
  readonly format: TextFormat;
  readonly verbosity: "low" | "medium" | "high" | null;
}

export type TextFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly name: string;
      readonly description: string | null;
      readonly schema: Readonly<Record<string, unknown>>;
      readonly strict: boolean | null;
    };

export interface ReasoningOptions {
  readonly effort: string | null;
  readonly summary: "auto" | "concise" | "detailed" | null;
}
