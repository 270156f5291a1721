/** A script's answer in the chat protocol, whole or as the chunks of a stream, with the keys that the official client reads. */
import { type Answer, callId, halves, piecesOf, textOf, tokensOf } from "./script.ts";

export interface ChatOptions {
  readonly id?: string;
  readonly model?: string;
  /** `stream_options.include_usage` of the request. */
  readonly includeUsage?: boolean;
}

/** OpenAI has no thoughts in chat; vLLM, SGLang and llama.cpp send them by this name. */
interface Delta {
  readonly role?: "assistant";
  readonly content?: string;
  readonly refusal?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly object[];
}

interface Chunk {
  readonly choices: readonly { readonly index: 0; readonly delta: Delta; readonly finish_reason: string | null }[];
}

const CREATED = 1_764_000_000;

/** OpenAI's form, or what the script puts in its place; nothing at "none". */
function usageOf(usage: Answer["usage"]): object {
  if (usage === "none") return {};
  if (usage !== undefined && "wire" in usage) return { usage: usage.wire };
  const { input, output, cached, reasoning } = tokensOf(usage);
  const details = {
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
  return { usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output, ...details } };
}

function finishOf(answer: Answer): string {
  return answer.finish ?? (answer.calls?.length ? "tool_calls" : "stop");
}

function deltasOf(answer: Answer): Delta[] {
  const calls = (answer.calls ?? []).flatMap((call, index): Delta[] => {
    const begun = { index, id: callId(call, index), type: "function", function: { name: call.name, arguments: "" } };
    const rest = halves(call.arguments).map((half) => ({ tool_calls: [{ index, function: { arguments: half } }] }));
    return [{ tool_calls: [begun] }, ...rest];
  });
  return [
    { role: "assistant", content: "" },
    ...halves(answer.reasoning).map((half) => ({ reasoning_content: half })),
    ...piecesOf(answer).map((content) => ({ content })),
    ...halves(answer.refusal).map((refusal) => ({ refusal })),
    ...calls,
  ];
}

/** The chunks of a stream; `[DONE]` is the writer's matter. */
export function chatChunks(answer: Answer, options: ChatOptions = {}): Chunk[] {
  const { id = "chatcmpl-1", model = "scripted", includeUsage = false } = options;
  const told = includeUsage && answer.usage !== "none";
  // OpenAI names the usage in every chunk as soon as it was asked for it.
  const head = { id, object: "chat.completion.chunk", created: CREATED, model, ...(told ? { usage: null } : {}) };
  const chunk = (delta: Delta, finish_reason: string | null = null): Chunk => ({
    ...head,
    ...{ choices: [{ index: 0, delta, finish_reason }] },
  });
  const chunks = [...deltasOf(answer).map((delta) => chunk(delta)), chunk({}, finishOf(answer))];
  return told ? [...chunks, { ...head, choices: [], ...usageOf(answer.usage) }] : chunks;
}

/** Whether a chunk carries something of the answer. */
export function isChatDelta({ choices: [choice] }: Chunk): boolean {
  const { content, refusal, reasoning_content, tool_calls } = choice?.delta ?? {};
  return Boolean(content || refusal || reasoning_content || tool_calls);
}

export function chatAnswer(answer: Answer, options: ChatOptions = {}): object {
  const { id = "chatcmpl-1", model = "scripted" } = options;
  const { reasoning: reasoning_content, refusal = null, calls } = answer;
  const tool_calls = calls?.map((call, index) => ({
    ...{ id: callId(call, index), type: "function", function: { name: call.name, arguments: call.arguments } },
  }));
  const message = { role: "assistant", content: textOf(answer) ?? null, refusal, reasoning_content, tool_calls };
  const choices = [{ index: 0, message, finish_reason: finishOf(answer) }];
  return { id, object: "chat.completion", created: CREATED, model, choices, ...usageOf(answer.usage) };
}
