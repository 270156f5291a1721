/** The only reader of the process' environment variables, and what is taken from them apart from the settings of `serve`. */
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

export function environment(): Environment {
  return process.env;
}

/** The environment of a child process of ours: this one's without the settings of any service, and `changes`. */
export function childEnvironment(
  changes: Readonly<Record<string, string>>,
  env: Environment = environment(),
): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^(TENDON_|DATABASE_URL$|REDIS_URL$)/.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...changes };
}

/** Connections that `fetch` may have at once: the most that Bun allows. */
const FETCH_CONNECTIONS_MAX = "65535";

/**
 * Makes `fetch` have any number of connections. Bun allows 256, has further calls wait unseen, and reads the variable when a process
 * starts. So the program is started anew in this process, and this function does not return. Descriptors above 2 are closed. The
 * program then reads its configuration again; with one that can be read only once, such as a pipe, it goes on with 256.
 */
export async function allowConnections(configPath: string, env: Environment = environment()): Promise<void> {
  if (env.BUN_CONFIG_MAX_HTTP_REQUESTS !== undefined) return;
  if (/^\/(dev\/fd|proc)\//.test(configPath) || !(await stat(configPath)).isFile()) return;
  const compiled = import.meta.path.startsWith("/$bunfs/");
  const words = compiled ? process.argv.slice(2) : [...process.execArgv, ...process.argv.slice(1)];
  const changed = { ...env, BUN_CONFIG_MAX_HTTP_REQUESTS: FETCH_CONNECTIONS_MAX };
  process.execve?.(process.execPath, [process.execPath, ...words], changed);
}

/** `all`: a test that would be skipped because something is not installed fails instead. */
export function testRequirement(env: Environment = environment()): "all" | "none" {
  return env.TENDON_TEST_REQUIRE === "all" ? "all" : "none";
}

/** The native library that tests load instead of the one that ships. */
export function testLibrary(env: Environment = environment()): string | undefined {
  return env.TENDON_TEST_LIBRARY || undefined;
}

/** The folders of configuration, data and cache (contract sections 6 and 8), by the XDG rules: a relative path is ignored. */
export function folders(env: Environment = environment()): { config: string; data: string; cache: string } {
  const home = env.HOME || homedir();
  const folder = (variable: string | undefined, fallback: string) =>
    join(variable?.startsWith("/") ? variable : join(home, fallback), "tendon");
  return {
    config: folder(env.XDG_CONFIG_HOME, ".config"),
    data: folder(env.XDG_DATA_HOME, ".local/share"),
    cache: folder(env.XDG_CACHE_HOME, ".cache"),
  };
}

/**
 * Folders with an ONNX Runtime that has the providers of GPUs. `named` must be usable; `kept` is where `tendon setup gpu` puts one, and
 * is used if it is there. `TENDON_ORT_DIR=none`: neither.
 */
export function ortFolders(env: Environment = environment()): { named?: string; kept?: string } {
  const given = env.TENDON_ORT_DIR || undefined;
  if (given === "none") return {};
  return given === undefined ? { kept: keptOrtFolder(env) } : { named: resolve(given) };
}

/** What makes a child process open the ONNX Runtime that this one opens. */
export function ortEnvironment(env: Environment = environment()): Record<string, string> {
  const given = env.TENDON_ORT_DIR || undefined;
  if (given === undefined) return {};
  return { TENDON_ORT_DIR: given === "none" ? given : resolve(given) };
}

export function keptOrtFolder(env: Environment = environment()): string {
  return join(folders(env).cache, "gpu");
}

/** What a client command (`act`, `status`, …) takes from the environment. It wins over the credentials file. */
export function clientConfig(env: Environment = environment()) {
  return {
    apiKey: env.TENDON_API_KEY || undefined,
    baseUrl: env.TENDON_BASE_URL || undefined,
    credentialsPath: join(folders(env).config, "credentials.json"),
  };
}
