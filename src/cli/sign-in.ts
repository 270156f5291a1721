/** Which service a client command calls, and with which key: flag, then environment, then the credentials file. */
import { type Credentials, readCredentials } from "../account/credentials.ts";
import { clientConfig, DEFAULTS, type Environment } from "../config.ts";
import { EXIT, Problem } from "../error.ts";
import type { Service } from "./client.ts";

/** The key in use, wherever it is sent to. Exit 3 without one. */
export async function keyInUse(env?: Environment): Promise<string | Problem> {
  const source = await readSource(env);
  return source instanceof Problem ? source : source.apiKey;
}

/** The service to call. Exit 3 without a key for it, 2 for an address that is none. */
export async function signedIn(baseUrlFlag: string | undefined, env?: Environment): Promise<Service | Problem> {
  const source = await readSource(env);
  if (source instanceof Problem) return source;
  const { apiKey, file, savedUrl } = source;
  const url = baseUrlFlag ?? clientConfig(env).baseUrl ?? savedUrl ?? `http://${DEFAULTS.host}:${DEFAULTS.port}`;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    return new Problem(`the base address '${url}' is not an http:// or https:// address`, EXIT.usage);
  }
  if (file && !belongs(file, new URL(url))) {
    const { credentialsPath } = clientConfig(env);
    const owner = file.base_url ?? "services on this machine";
    return new Problem(
      `the key in ${credentialsPath} is for ${owner} and is not sent to ${url}; set TENDON_API_KEY to a key of that service`,
      EXIT.notSignedIn,
    );
  }
  return { url: url.replace(/\/+$/, ""), apiKey };
}

interface Source {
  readonly apiKey: string;
  /** The credentials file, where the key is from it. */
  readonly file: Credentials | undefined;
  /** The address that the file names, also where the key is from the environment. */
  readonly savedUrl: string | undefined;
}

async function readSource(env: Environment | undefined): Promise<Source | Problem> {
  const config = clientConfig(env);
  const saved = await readCredentials(config.credentialsPath);
  // A broken file matters only where it would have been needed.
  const file = saved instanceof Problem ? undefined : saved;
  const savedUrl = file?.base_url;
  if (config.apiKey !== undefined) return { apiKey: config.apiKey, file: undefined, savedUrl };
  if (saved instanceof Problem) return new Problem(saved.message, EXIT.notSignedIn);
  if (file !== undefined) return { apiKey: file.api_key, file, savedUrl };
  return new Problem(
    `no API key: set TENDON_API_KEY, or start 'tendon serve --dev' once, which saves one in ${config.credentialsPath}`,
    EXIT.notSignedIn,
  );
}

/** Whether a saved key may be sent there: to the origin it is for, or from this machine to this machine. */
function belongs(file: Credentials, to: URL): boolean {
  // `serve --dev` may have another port at each start, so services on this machine share a key.
  if (file.base_url === undefined) return isLoopback(to);
  if (!URL.canParse(file.base_url)) return false;
  const home = new URL(file.base_url);
  return home.origin === to.origin || (isLoopback(home) && isLoopback(to));
}

function isLoopback(url: URL): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
}
