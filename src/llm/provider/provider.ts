/** The provider of a model: the fields that it refuses, and a call to it from the request to the answer in a draft. */
import type { LlmConfig, Refusable } from "../../config/llm.ts";
import type { Clock } from "../../std/clock.ts";
import { parseJson } from "../../std/json.ts";
import type { Draft } from "../output/draft.ts";
import type { InputItem, LlmRequest } from "../request.ts";
import { ChatDialect, chatBody, chatRefuses } from "./chat.ts";
import { Client } from "./client.ts";
import { Fault } from "./fault.ts";
import { type Ending, Reader } from "./reader.ts";
import { ResponsesDialect, responsesBody } from "./responses.ts";

export interface Call {
  readonly request: LlmRequest;
  readonly accountId: string;
  readonly draft: Draft;
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
      const image = field === "images" ? request.input.findIndex(hasImage) : -1;
      if (image >= 0) return `input[${image}].content`;
      if (field !== "images" && has(request, field)) return field;
    }
    return undefined;
  }

  /** Makes the body that `answer` will send, while the caller waits for something else. */
  prepare(request: LlmRequest, accountId: string): void {
    this.bodies.set(request, this.bodyOf(request, accountId));
  }

  async answer({ request, accountId, draft, signal, moved }: Call): Promise<Ending | Fault> {
    const { path, Dialect } = PROTOCOLS[this.config.protocol];
    const { stream } = this.config;
    const { max_output_tokens: outputTokensMax } = request;
    const reader = new Reader(new Dialect(draft, outputTokensMax), draft, moved);
    const body = this.bodies.get(request) ?? this.bodyOf(request, accountId);
    this.bodies.delete(request);
    const fault = await this.client.call({ path, body, stream, signal }, reader);
    const ending = fault && !reader.whole ? fault : reader.ending();
    return ending instanceof Fault ? ending.logged(this.apiKey) : limited(ending, outputTokensMax, draft);
  }

  private bodyOf(request: LlmRequest, accountId: string): string {
    return JSON.stringify(PROTOCOLS[this.config.protocol].body(ownNames(request, accountId), this.config));
  }
}

/** Arguments that are no JSON at the limit of tokens were cut off by it, whatever the provider sends as its reason. */
function limited(ending: Ending, outputTokensMax: number, draft: Draft): Ending {
  const { usage, incomplete } = ending;
  if (incomplete || !usage || usage.completionTokens < outputTokensMax) return ending;
  const cut = draft.output.some((item) => item.type === "function_call" && parseJson(item.arguments) === undefined);
  return cut ? { usage, incomplete: "max_output_tokens" } : ending;
}

/** What names the client's users and caches, as hashes that no other account has: to the provider all accounts are one. */
function ownNames(request: LlmRequest, accountId: string): LlmRequest {
  const own = (name: string | null) =>
    name === null ? null : new Bun.CryptoHasher("sha256", accountId).update(name).digest("hex");
  const { user, safety_identifier, prompt_cache_key } = request;
  return {
    ...request,
    user: own(user),
    safety_identifier: own(safety_identifier),
    prompt_cache_key: own(prompt_cache_key),
  };
}

const PROTOCOLS = {
  chat: { path: "chat/completions", body: chatBody, Dialect: ChatDialect },
  responses: { path: "responses", body: responsesBody, Dialect: ResponsesDialect },
} as const;

function has(request: LlmRequest, field: Exclude<Refusable, "images">): boolean {
  const { tools, tool_choice, text, reasoning } = request;
  if (field === "tools") return tools.length > 0;
  if (field === "tool_choice") return tool_choice !== "auto";
  if (field === "text.format") return text.format.type !== "text";
  if (field === "text.verbosity") return text.verbosity !== null;
  if (field === "reasoning") return reasoning.effort !== null || reasoning.summary !== null;
  return request[field] !== null;
}

function hasImage(item: InputItem): boolean {
  return item.type === "message" && item.content.some(({ type }) => type === "input_image");
}
