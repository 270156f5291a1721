/** The language models' checks of `tendon doctor`: is each provider there, does it take its key, does it know its model? */

import type { LlmConfig } from "../../config/llm.ts";
import type { ServeConfig } from "../../config/serve.ts";
import { LLM_ADVICE, planProviders } from "../../service/providers.ts";
import { systemClock } from "../../std/clock.ts";
import { textAt, valueAt } from "../../std/json.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { type Check, green, red } from "./checks.ts";

/** For connection and answer; a list of models takes a provider no time. */
const ANSWER_MS = 5_000;
/** Names of models that a line shows. */
const NAMES_MAX = 5;

type Llm = Pick<ServeConfig, "llm" | "providerKeys" | "configPath">;

/** One per configured id; one that says what to write, where there is none. */
export async function providerChecks({ llm, providerKeys, configPath }: Llm): Promise<Check[]> {
  if (llm.size === 0) {
    const todo = [`for a first one, put these lines into ${configPath}:`, ...LLM_ADVICE].join("\n");
    return [green("language models", "none is configured: requests for one are answered with unconfigured", todo)];
  }
  // Ids often share a provider: it is asked once.
  const asked = new Map<string, Promise<ModelAnswer>>();
  const checks = [...llm].map(async ([id, config]) => {
    const planned = planProviders({ llm: new Map([[id, config]]), providerKeys }, systemClock);
    if (planned instanceof Problem) return red(id, planned.message);
    const { baseUrl, apiKeyEnv = "" } = config;
    const name = `${apiKeyEnv} ${baseUrl}`;
    const found = asked.get(name) ?? modelsOf(baseUrl, providerKeys.get(apiKeyEnv));
    asked.set(name, found);
    return providerCheck(id, config, await found);
  });
  return await Promise.all(checks);
}

/** What a provider answers to `GET /models`. */
export type ModelAnswer =
  | { readonly status: number; readonly names: readonly string[] | undefined }
  | { readonly away: string };

async function modelsOf(baseUrl: string, key: string | undefined): Promise<ModelAnswer> {
  try {
    const response = await fetch(`${baseUrl.replace(/\/+$/, "")}/models`, {
      headers: { accept: "application/json", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
      // A redirect is not followed: the key is for this address alone.
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const data = valueAt(await response.json().catch(() => undefined), "data");
    const names = Array.isArray(data) ? data.map((model) => printable(textAt(model, "id") ?? "")) : undefined;
    return { status: response.status, names };
  } catch (error) {
    const { name, code } = error as { readonly name?: string; readonly code?: unknown };
    if (name === "TimeoutError") return { away: `no answer within ${ANSWER_MS / 1000} s` };
    return { away: typeof code === "string" ? code : "no answer" };
  }
}

export function providerCheck(id: string, config: LlmConfig, found: ModelAnswer): Check {
  const { baseUrl, protocol, apiKeyEnv } = config;
  const { host } = new URL(baseUrl);
  const model = printable(config.model);
  const what = `"${model}" at ${host}, ${protocol}`;
  if ("away" in found)
    return red(id, `${host} is not reached: ${found.away}; start that provider, or correct base_url`);
  const { status, names } = found;
  if (status === 401 || status === 403) {
    return apiKeyEnv === undefined
      ? red(id, `${host} wants a key (status ${status}); put one into a variable, and its name into api_key_env`)
      : red(id, `${host} refuses the key in ${apiKeyEnv} (status ${status}); put a good one there`);
  }
  if (status >= 500)
    return red(id, `${host} answers with status ${status}; it may still be loading, else its log says why`);
  if (status >= 300 && status < 400) {
    return red(id, `${host} answers that it is elsewhere (status ${status}); put that address into base_url`);
  }
  if (status === 404 || status === 405) {
    return green(id, what, `it has no list of models at ${host}; if requests fail too, look at the path in base_url`);
  }
  if (names === undefined) return green(id, what, `it answers with status ${status} instead of a list of models`);
  if (names.includes(config.model)) return green(id, what);
  const known = names.slice(0, NAMES_MAX).join(", ") + (names.length > NAMES_MAX ? ", …" : "");
  return green(id, what, `it does not list that name, it lists: ${known === "" ? "nothing" : known}`);
}
