/** The language models as `tendon models` lists them: each id, its provider, and whether it can answer. */
import type { ServeConfig } from "../../config/serve.ts";
import { isBackground, LLM_IDS, type LlmId, outputTokensDefault } from "../../llm/models.ts";
import { printable } from "../../std/printable.ts";
import { table } from "../../std/text-table.ts";

export interface LanguageModel {
  readonly id: LlmId;
  /** What `stream: true` brings. */
  readonly stream: "live" | "buffered";
  readonly max_output_tokens_default: number;
  readonly state: "configured" | "not_configured" | "key_missing";
  readonly provider: {
    /** Of the base address, with a port that is not the usual one. */
    readonly host: string;
    readonly protocol: "responses" | "chat";
    /** Its own name of the model. */
    readonly model: string;
    readonly api_key_env: string | null;
  } | null;
}

export function languageModels({ llm, providerKeys }: Pick<ServeConfig, "llm" | "providerKeys">): LanguageModel[] {
  return LLM_IDS.map((id) => {
    const facts = {
      id,
      stream: isBackground(id) ? "buffered" : "live",
      max_output_tokens_default: outputTokensDefault(id),
    } as const;
    const config = llm.get(id);
    if (config === undefined) return { ...facts, state: "not_configured", provider: null };
    const { baseUrl, protocol, model, apiKeyEnv } = config;
    const missing = apiKeyEnv !== undefined && !providerKeys.has(apiKeyEnv);
    const provider = { host: new URL(baseUrl).host, protocol, model, api_key_env: apiKeyEnv ?? null };
    return { ...facts, state: missing ? "key_missing" : "configured", provider };
  });
}

export function languageModelsText(models: readonly LanguageModel[]): string {
  const head = ["language model", "answers", "state", "provider", "protocol", "its model"];
  const rows = models.map(({ id, stream, state, provider }) => [
    id,
    stream === "live" ? "live" : "in the background",
    state === "key_missing" ? `key missing: set ${provider?.api_key_env}` : state.replace("_", " "),
    provider?.host ?? "-",
    provider?.protocol ?? "-",
    printable(provider?.model ?? "-"),
  ]);
  return table([head, ...rows]);
}
