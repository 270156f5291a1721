/** Which service a client command calls, and with which key: flag, then environment, then the credentials file. */
import { readCredentials } from "../account/credentials.ts";
import { clientConfig, DEFAULTS, type Environment } from "../config.ts";
import { EXIT, Problem } from "../error.ts";
import type { Service } from "./client.ts";

/** The service to call. Exit 3 without a key, 2 for an address that is none. */
export async function signedIn(baseUrlFlag: string | undefined, env?: Environment): Promise<Service | Problem> {
  const config = clientConfig(env);
  const saved = await readCredentials(config.credentialsPath);
  // A broken file matters only where it would have been needed.
  if (saved instanceof Problem && config.apiKey === undefined) return new Problem(saved.message, EXIT.notSignedIn);
  const file = saved instanceof Problem ? undefined : saved;
  const url = baseUrlFlag ?? config.baseUrl ?? file?.base_url ?? `http://${DEFAULTS.host}:${DEFAULTS.port}`;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    return new Problem(`the base address '${url}' is not an http:// or https:// address`, EXIT.usage);
  }
  const apiKey = config.apiKey ?? file?.api_key;
  if (apiKey === undefined) {
    return new Problem(
      `no API key: set TENDON_API_KEY, or start 'tendon serve --dev' once, which saves one in ${config.credentialsPath}`,
      EXIT.notSignedIn,
    );
  }
  return { url: url.replace(/\/+$/, ""), apiKey };
}
