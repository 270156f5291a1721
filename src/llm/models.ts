/** The language models' ids (interface specification, LLM ids): each is a contract, whether a provider is configured or not. */
export const LLM_IDS = [
  "llm-a-5.3:async",
  "llm-b-v4-flash:async",
  "llm-a-5.3:superfast",
  "llm-b-v4-flash:superfast",
  "llm-c-k3:superfast",
] as const;
