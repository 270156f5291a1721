/** What usage costs: whole nano-dollars, from counts and from rates that were copied into the charge when it was opened. */
import { assert } from "../std/assert.ts";
import type { Rates, Usage } from "../store/charges/records.ts";

/** Nano-dollars. Cached prompt tokens are part of the prompt tokens and have a rate of their own. */
export function costOf({ promptTokens, cachedTokens, completionTokens }: Usage, rates: Rates): bigint {
  assert(cachedTokens <= promptTokens, "no more tokens are cached than there are");
  return (
    BigInt(promptTokens - cachedTokens) * rates.prompt +
    BigInt(cachedTokens) * rates.cachedPrompt +
    BigInt(completionTokens) * rates.completion
  );
}

/** The most that usage can cost: all prompt tokens at the uncached rate, which is the higher one (config.ts), and all completion. */
export function maximumCost(promptTokens: number, completionTokens: number, rates: Rates): bigint {
  return BigInt(promptTokens) * rates.prompt + BigInt(completionTokens) * rates.completion;
}
