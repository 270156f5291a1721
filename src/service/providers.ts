/** From the configuration to the providers of the language models. */
import { llmFault } from "../config/llm.ts";
import type { ServeConfig } from "../config/serve.ts";
import { isLlmId, LLM_IDS, type LlmId } from "../llm/models.ts";
import { Provider } from "../llm/provider/provider.ts";
import type { Clock } from "../std/clock.ts";
import { nearest } from "../std/nearest.ts";
import { EXIT, Problem } from "../std/problem.ts";

/** What can stand in the head of a request: printable ASCII without spaces. */
const PRINTABLE = /^[!-~]+$/;

/** By the ids that they serve, or the first thing that is wrong. */
export function planProviders(
  { llm, providerKeys }: Pick<ServeConfig, "llm" | "providerKeys">,
  clock: Clock,
): ReadonlyMap<LlmId, Provider> | Problem {
  const providers = new Map<LlmId, Provider>();
  for (const [id, config] of llm) {
    if (!isLlmId(id)) {
      const message = `the configuration has [llm."${id}"], but there is no such language model; did you mean "${nearest(id, LLM_IDS)}"?`;
      return new Problem(message, EXIT.usage);
    }
    const fault = llmFault(config);
    if (fault !== undefined) return new Problem(`[llm."${id}"]: ${fault}`, EXIT.usage);
    const { apiKeyEnv } = config;
    const key = apiKeyEnv === undefined ? undefined : providerKeys.get(apiKeyEnv);
    if (apiKeyEnv !== undefined && !key) {
      return new Problem(
        `[llm."${id}"]: the variable ${apiKeyEnv} (api_key_env) is not set; put the provider's key there`,
        EXIT.usage,
      );
    }
    if (key !== undefined && !PRINTABLE.test(key)) {
      return new Problem(
        `[llm."${id}"]: the variable ${apiKeyEnv} (api_key_env) holds a space, a line break or another character that is not printable ASCII; put the provider's key there, and nothing else`,
        EXIT.usage,
      );
    }
    providers.set(id, new Provider(config, key, clock));
  }
  return providers;
}

/** What to write into tendon.toml for a first language model. */
export const LLM_ADVICE = [
  '[llm."llm-a-5.3:superfast"]',
  'base_url = "http://127.0.0.1:8000/v1"',
  'protocol = "chat"',
  'model = "the-name-that-the-provider-knows"',
] as const;
