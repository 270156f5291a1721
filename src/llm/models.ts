/** The language models' ids and what each promises (interface specification, LLM ids), whether a provider is configured or not. */
export const LLM_IDS = [
  "llm-a-5.3:async",
  "llm-b-v4-flash:async",
  "llm-a-5.3:superfast",
  "llm-b-v4-flash:superfast",
  "llm-c-k3:superfast",
] as const;

export type LlmId = (typeof LLM_IDS)[number];

export function isLlmId(text: string): text is LlmId {
  return (LLM_IDS as readonly string[]).includes(text);
}

/** Whether it runs in the background, and the client polls. */
export function isBackground(id: LlmId): boolean {
  return id.endsWith(":async");
}

/** `max_output_tokens` where the request does not say. */
export function outputTokensDefault(id: LlmId): number {
  return id === "llm-a-5.3:superfast" ? 8_192 : 4_096;
}
