/** Which service a client command calls, and with which key: flag, then environment, then the credentials file. */
import { type Credentials, readCredentials } from "../account/credentials.ts";
import { keyPrefix, keyPublicId } from "../account/key.ts";
import { clientConfig, type Environment } from "../config/environment.ts";
import { DEFAULTS } from "../config/serve.ts";
import { EXIT, Problem } from "../std/problem.ts";
import type { Service } from "./http.ts";

export interface SignedIn extends Service {
  /** The source of the key. */
  readonly source: "environment" | "credentials";
}

/** The key in use, for whatever address. Exit 3 without one. */
export async function keyInUse(env?: Environment): Promise<string | Problem> {
  const source = await readSource(env);
  return source instanceof Problem ? source : source.apiKey;
}

/** The service to call. Exit 3 without a key for it, 2 for an address that is none. */
export async function signedIn(baseUrlFlag: string | undefined, env?: Environment): Promise<SignedIn | Problem> {
  const source = await readSource(env);
  if (source instanceof Problem) return source;
  const { apiKey, file, savedUrl } = source;
  const url = serviceUrl(baseUrlFlag, savedUrl, env);
  if (url instanceof Problem) return url;
  if (file && !isFor(file, url)) {
    const { credentialsPath } = clientConfig(env);
    return new Problem(
      `the key in ${credentialsPath} is for ${owner(file)} and is not sent to ${url}; set TENDON_API_KEY to a key of that service`,
      EXIT.notSignedIn,
    );
  }
  return { url, apiKey, source: file ? "credentials" : "environment" };
}

/** The service's address, without a slash at its end. Exit 2 for a text that is none. */
export function serviceUrl(
  baseUrlFlag: string | undefined,
  savedUrl: string | undefined,
  env?: Environment,
): string | Problem {
  const url = baseUrlFlag ?? clientConfig(env).baseUrl ?? savedUrl ?? `http://${DEFAULTS.host}:${DEFAULTS.port}`;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    return new Problem(`the base address '${url}' is not an http:// or https:// address`, EXIT.usage);
  }
  const { username, password } = new URL(url);
  if (username !== "" || password !== "" || /[?#]/.test(url)) {
    return new Problem("the base address has a user, a password, '?' or '#'; give scheme, host and path", EXIT.usage);
  }
  return url.replace(/\/+$/, "");
}

/** Whether a saved key may be sent there: to the origin it is for, or from this machine to this machine. */
export function isFor(file: Credentials, url: string): boolean {
  // `serve --dev` may have another port at each start, so services on this machine share a key.
  if (file.base_url === undefined) return isLoopback(url);
  return hasOrigin(file, url) || (URL.canParse(file.base_url) && isLoopback(file.base_url) && isLoopback(url));
}

/** Whether the saved key was made by the service at this very address. */
export function hasOrigin(file: Credentials, url: string): boolean {
  const home = file.base_url;
  return home !== undefined && URL.canParse(home) && new URL(home).origin === new URL(url).origin;
}

/** The service that the saved key is for, in words. */
export function owner(file: Credentials): string {
  return file.base_url ?? "services on this machine";
}

export function isLoopback(url: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}

/** The part of a key that may be shown; undefined for a text that is no key, of which nothing may be. */
export function safePrefix(key: string): string | undefined {
  const publicId = keyPublicId(key);
  return publicId === undefined ? undefined : keyPrefix(publicId);
}

/** The key, the credentials file where the key is from it, and the address that the file names in any case. */
async function readSource(env: Environment | undefined) {
  const config = clientConfig(env);
  const saved = await readCredentials(config.credentialsPath);
  // With a key from the environment, a broken credentials file does not matter.
  const file = saved instanceof Problem ? undefined : saved;
  const savedUrl = file?.base_url;
  if (config.apiKey !== undefined) return { apiKey: config.apiKey, file: undefined, savedUrl };
  if (saved instanceof Problem) return new Problem(saved.message, EXIT.notSignedIn);
  if (file !== undefined) return { apiKey: file.api_key, file, savedUrl };
  return new Problem(
    `no API key: run 'tendon login', which saves one in ${config.credentialsPath}, or set TENDON_API_KEY; 'tendon serve --dev' saves one too`,
    EXIT.notSignedIn,
  );
}
