/** The provider of a model: the fields that it refuses, and a call to it from the request to the answer in a draft. */
import type { LlmConfig, Refusable } from "../../config/llm.ts";
import type { Clock } from "../../std/clock.ts";
import { parsed } from "../json.ts";
import type { Draft } from "../output/draft.ts";
import type { LlmRequest } from "../request.ts";
import { ChatDialect, chatBody, chatRefuses } from "./chat.ts";
import { Client } from "./client.ts";
import { Fault } from "./fault.ts";
import { type Ending, Reader } from "./reader.ts";
import { ResponsesDialect, responsesBody } from "./responses.ts";

export interface Call {
  readonly request: LlmRequest;
  readonly draft: Draft;
  /** The request must not be sent twice. */
  readonly once: boolean;
  readonly signal: AbortSignal;
  /** Called after each piece of the answer. A fault that it returns stops the call. */
  readonly moved: () => Fault | undefined;
}

export class Provider {
  private readonly client: Client;
  /** Prepared bodies. */
  private readonly bodies = new WeakMap<LlmRequest, string>();

  constructor(
    readonly config: LlmConfig,
    private readonly apiKey: string | undefined,
    clock: Clock,
  ) {
    this.client = new Client(config, apiKey, clock);
  }

  /** The field of the request that this provider cannot honour, or undefined. */
  refuses(request: LlmRequest): string | undefined {
    const own = this.config.protocol === "chat" ? chatRefuses(request) : undefined;
    if (own !== undefined) return own;
    for (const field of this.config.refuses) {
      const param = PARAMS[field](request);
      if (param !== undefined) return param;
    }
    return undefined;
  }

  /** Makes the body that `answer` will send, while the caller waits for something else. */
  prepare(request: LlmRequest): void {
    this.bodies.set(request, this.bodyOf(request));
  }

  async answer({ request, draft, once, signal, moved }: Call): Promise<Ending | Fault> {
    const { apiKey: secret, config } = this;
    const chat = config.protocol === "chat";
    const { stream } = config;
    const dialect = chat
      ? new ChatDialect(draft, secret)
      : new ResponsesDialect(draft, { secret, outputTokensMax: request.max_output_tokens });
    const reader = new Reader(dialect, draft, moved);
    const { max_output_tokens: outputTokensMax } = request;
    const body = this.bodies.get(request) ?? this.bodyOf(request);
    this.bodies.delete(request);
    const path = chat ? "chat/completions" : "responses";
    const fault = await this.client.call({ path, body, stream, once, signal }, reader);
    return fault ?? this.whole(reader.ending(), outputTokensMax, draft);
  }

  private bodyOf(request: LlmRequest): string {
    const { config } = this;
    const { stream } = config;
    return JSON.stringify(
      config.protocol === "chat" ? chatBody(request, config, stream) : responsesBody(request, config, stream),
    );
  }

  /** Arguments of a call that are not JSON were cut off, whatever the provider sends as its reason. */
  private whole(ending: Ending | Fault, outputTokensMax: number, draft: Draft): Ending | Fault {
    if (ending instanceof Fault || ending.incomplete) return ending;
    const cut = draft.output.some((item) => item.type === "function_call" && parsed(item.arguments) === undefined);
    if (!cut) return ending;
    const { usage } = ending;
    if (usage && usage.outputTokens >= outputTokensMax) return { usage, incomplete: "max_output_tokens" };
    return new Fault("invalid", "a tool call whose arguments are no JSON");
  }
}

/** The path of each field in a request, as errors name it; undefined where the request does not have it. */
const PARAMS: Readonly<Record<Refusable, (request: LlmRequest) => string | undefined>> = {
  images: ({ input }) => {
    const at = input.findIndex(
      (item) => item.type === "message" && item.content.some(({ type }) => type === "input_image"),
    );
    return at < 0 ? undefined : `input[${at}].content`;
  },
  tools: ({ tools }) => (tools.length > 0 ? "tools" : undefined),
  tool_choice: ({ tool_choice }) => (tool_choice === "auto" ? undefined : "tool_choice"),
  parallel_tool_calls: ({ parallel_tool_calls }) => (parallel_tool_calls === null ? undefined : "parallel_tool_calls"),
  "text.format": ({ text }) => (text.format.type === "text" ? undefined : "text.format"),
  "text.verbosity": ({ text }) => (text.verbosity === null ? undefined : "text.verbosity"),
  reasoning: ({ reasoning }) => (reasoning.effort === null && reasoning.summary === null ? undefined : "reasoning"),
  temperature: ({ temperature }) => (temperature === null ? undefined : "temperature"),
  top_p: ({ top_p }) => (top_p === null ? undefined : "top_p"),
  user: ({ user }) => (user === null ? undefined : "user"),
  safety_identifier: ({ safety_identifier }) => (safety_identifier === null ? undefined : "safety_identifier"),
  prompt_cache_key: ({ prompt_cache_key }) => (prompt_cache_key === null ? undefined : "prompt_cache_key"),
};
