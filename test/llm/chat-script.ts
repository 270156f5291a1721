/** A script's answer in the chat protocol, whole or as the chunks of a stream, complete as OpenAI's. */
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionMessage } from "openai/resources/chat/completions";
import type { CompletionUsage } from "openai/resources/completions";
import { type Answer, callId, halves, piecesOf, textOf, tokensOf } from "./script.ts";

export interface ChatOptions {
  readonly id?: string;
  readonly model?: string;
  /** `stream_options.include_usage` of the request. */
  readonly includeUsage?: boolean;
}

const CREATED = 1_764_000_000;

/** OpenAI has no thoughts in chat; vLLM, SGLang and llama.cpp send them by this name. */
type Delta = ChatCompletionChunk.Choice.Delta & { readonly reasoning_content?: string };
type Message = ChatCompletionMessage & { readonly reasoning_content?: string };

/** As OpenAI writes it, or whatever the script puts in its place; nothing at "none". */
function usageOf(usage: Answer["usage"]): { usage?: CompletionUsage } {
  if (usage === "none") return {};
  if (usage !== undefined && "wire" in usage) return { usage: usage.wire as CompletionUsage };
  const { input, output, cached, reasoning } = tokensOf(usage);
  return {
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: reasoning,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
  };
}

function finishOf(answer: Answer) {
  return answer.finish ?? (answer.calls?.length ? "tool_calls" : "stop");
}

function deltasOf(answer: Answer): Delta[] {
  const calls = (answer.calls ?? []).flatMap((call, index): Delta[] => [
    {
      tool_calls: [{ index, id: callId(call, index), type: "function", function: { name: call.name, arguments: "" } }],
    },
    ...halves(call.arguments).map((half): Delta => ({ tool_calls: [{ index, function: { arguments: half } }] })),
  ]);
  return [
    { role: "assistant", content: "" },
    ...halves(answer.reasoning).map((half) => ({ reasoning_content: half })),
    ...piecesOf(answer).map((content) => ({ content })),
    ...halves(answer.refusal).map((refusal) => ({ refusal })),
    ...calls,
  ];
}

/** The chunks of a stream; `[DONE]` is the writer's matter. */
export function chatChunks(answer: Answer, options: ChatOptions = {}): ChatCompletionChunk[] {
  const { id = "chatcmpl-1", model = "scripted", includeUsage = false } = options;
  const finish = finishOf(answer);
  const chunk = (choices: ChatCompletionChunk.Choice[]): ChatCompletionChunk => ({
    id,
    object: "chat.completion.chunk",
    created: CREATED,
    model,
    system_fingerprint: "fp_scripted",
    choices,
    // OpenAI names the usage in every chunk as soon as it was asked for it.
    ...(includeUsage && answer.usage !== "none" ? { usage: null } : {}),
  });
  const chunks = deltasOf(answer).map((delta) => chunk([{ index: 0, delta, logprobs: null, finish_reason: null }]));
  chunks.push(chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: finish }]));
  if (includeUsage && answer.usage !== "none") chunks.push({ ...chunk([]), ...usageOf(answer.usage) });
  return chunks;
}

/** Whether a chunk carries something of the answer. */
export function isChatDelta(chunk: ChatCompletionChunk): boolean {
  const delta: Delta = chunk.choices[0]?.delta ?? {};
  return Boolean(delta.content || delta.refusal || delta.reasoning_content || delta.tool_calls);
}

export function chatAnswer(answer: Answer, options: ChatOptions = {}): ChatCompletion {
  const { id = "chatcmpl-1", model = "scripted" } = options;
  const message: Message = {
    role: "assistant",
    content: textOf(answer) ?? null,
    refusal: answer.refusal ?? null,
    annotations: [],
    ...(answer.reasoning === undefined ? {} : { reasoning_content: answer.reasoning }),
    ...(answer.calls === undefined
      ? {}
      : {
          tool_calls: answer.calls.map((call, index) => ({
            id: callId(call, index),
            type: "function" as const,
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
  };
  return {
    id,
    object: "chat.completion",
    created: CREATED,
    model,
    system_fingerprint: "fp_scripted",
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(answer) }],
    ...usageOf(answer.usage),
  } satisfies ChatCompletion;
}
