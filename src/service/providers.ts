/** The providers of the language models, from the configuration. */
import { llmFault } from "../config/llm.ts";
import type { ServeConfig } from "../config/serve.ts";
import { isLlmId, LLM_IDS, type LlmId } from "../llm/models.ts";
import { Provider } from "../llm/provider/provider.ts";
import type { Clock } from "../std/clock.ts";
import { nearest } from "../std/nearest.ts";
import { EXIT, Problem } from "../std/problem.ts";

/** The characters that a header of a request may have: printable ASCII without spaces. */
const PRINTABLE = /^[!-~]+$/;

/** The providers by the ids that they serve, or the first thing that is wrong. */
export function planProviders(
  { llm, providerKeys }: Pick<ServeConfig, "llm" | "providerKeys">,
  clock: Clock,
): ReadonlyMap<LlmId, Provider> | Problem {
  const providers = new Map<LlmId, Provider>();
  for (const [id, config] of llm) {
    const problem = (what: string) => new Problem(what, EXIT.usage);
    if (!isLlmId(id)) {
      const advice = `did you mean "${nearest(id, LLM_IDS)}"?`;
      return problem(`the configuration has [llm."${id}"], but there is no such language model; ${advice}`);
    }
    const fault = llmFault(config);
    if (fault !== undefined) return problem(`[llm."${id}"]: ${fault}`);
    const { apiKeyEnv } = config;
    const key = apiKeyEnv === undefined ? undefined : providerKeys.get(apiKeyEnv);
    const variable = `[llm."${id}"]: the variable ${apiKeyEnv} (api_key_env)`;
    if (apiKeyEnv !== undefined && !key) return problem(`${variable} is not set; put the provider's key there`);
    if (key !== undefined && !PRINTABLE.test(key)) {
      const found = "a space, a line break or another character that is not printable ASCII";
      return problem(`${variable} holds ${found}; put the provider's key there, and nothing else`);
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
