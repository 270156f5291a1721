/**
 * The only reader of the environment and of tendon.toml. Flags win over `TENDON_*` variables, which win over the file.
 * Strict: an unknown key of the file is a problem that names the nearest known one. The result is frozen.
 */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type Drills, readDrills } from "../drill.ts";
import { EXIT, Problem } from "../error/problem.ts";
import { LIMITS } from "../limits.ts";
import { readText } from "../std/file.ts";
import {
  flag,
  integer,
  type Key,
  type Keys,
  oneOf,
  type Reader,
  readTable,
  readTables,
  refused,
  type Table,
  text,
} from "./table.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where an HTTP server listens; port 0 picks a free one. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** One `[llm."ID"]` table: the provider behind a language model. Rates are nano-dollars per token. */
interface LlmConfig {
  readonly baseUrl: string;
  readonly protocol: "responses" | "chat";
  readonly model: string;
  readonly apiKeyEnv: string;
  readonly connectSeconds: number;
  readonly firstByteSeconds: number;
  readonly idleSeconds: number;
  readonly totalSeconds: number;
  readonly messageMarginTokens: number;
  readonly imageTokens: number;
  readonly inputNanosPerToken: bigint;
  readonly cachedInputNanosPerToken: bigint;
  readonly outputNanosPerToken: bigint;
}

/** One `[robot."ID"]` table. Rates are nano-dollars per token and per row. */
export interface RobotConfig {
  readonly replicas: number;
  /** Sessions that a replica holds; undefined: what its memory can. */
  readonly slots: number | undefined;
  /** One device, or one per replica. */
  readonly device: string | readonly string[];
  /** Threads inside one run. */
  readonly threads: number;
  /** Serve random weights outside `--dev`. */
  readonly allowReference: boolean;
  readonly promptNanosPerToken: bigint;
  readonly cachedPromptNanosPerToken: bigint;
  readonly rowNanosPerRow: bigint;
}

export interface ServeConfig {
  readonly listen: Address;
  readonly ops: Address;
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** Address of a PostgreSQL database; undefined: the store is in the data folder. A secret: it may hold a password. */
  readonly databaseUrl: string | undefined;
  /** Absolute path of the bundles' folder; undefined: those that ship with the executable. */
  readonly modelsDir: string | undefined;
  readonly chunkSeconds: number;
  readonly signup: "open" | "closed";
  readonly responseDays: number;
  readonly usageDays: number;
  readonly dev: boolean;
  /** Failures to rehearse; none without `--dev`. */
  readonly drills: Drills;
  readonly json: boolean;
  readonly credentialsPath: string;
  readonly llm: ReadonlyMap<string, LlmConfig>;
  readonly robot: ReadonlyMap<string, RobotConfig>;
}

/** The flags of `serve`, as typed. */
export interface ServeFlags {
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly data?: string | undefined;
  readonly models?: string | undefined;
  readonly config?: string | undefined;
  readonly dev: boolean;
  readonly json: boolean;
}

export const DEFAULTS = { host: "127.0.0.1", port: 8080, ops: { host: "127.0.0.1", port: 9464 } } as const;

/** The folders of contract sections 6 and 8, by the XDG rules; an XDG variable that is not absolute is ignored. */
export function folders(env: Environment = process.env): { config: string; data: string; cache: string } {
  const home = env.HOME || homedir();
  const folder = (variable: string | undefined, fallback: string) =>
    join(variable?.startsWith("/") ? variable : join(home, fallback), "tendon");
  return {
    config: folder(env.XDG_CONFIG_HOME, ".config"),
    data: folder(env.XDG_DATA_HOME, ".local/share"),
    cache: folder(env.XDG_CACHE_HOME, ".cache"),
  };
}

/** The environment of a child process of ours: this one's without the settings of any service, and `changes`. */
export function childEnvironment(
  changes: Readonly<Record<string, string>>,
  env: Environment = process.env,
): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^(TENDON_|DATABASE_URL$|REDIS_URL$)/.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...changes };
}

/** What a client command (`act`, `status`, …) takes from the environment; the credentials file comes after it. */
export function clientConfig(env: Environment = process.env): {
  apiKey: string | undefined;
  baseUrl: string | undefined;
  credentialsPath: string;
} {
  return {
    apiKey: env.TENDON_API_KEY || undefined,
    baseUrl: env.TENDON_BASE_URL || undefined,
    credentialsPath: join(folders(env).config, "credentials.json"),
  };
}

const seconds: Reader<number> = (value) =>
  typeof value === "number" && value >= 0.001 && value <= 86_400
    ? value
    : refused("a number of seconds from 0.001 to 86400", value);

const chunkSeconds: Reader<number> = (value) =>
  typeof value === "number" && value >= 0.001 && value <= LIMITS.chunkSecondsMax
    ? value
    : refused(`a number of seconds from 0.001 to ${LIMITS.chunkSecondsMax}`, value);

/** US dollars per million units, as nano-dollars per unit: times 1000, so at most three decimal places. */
const rate: Reader<bigint> = (value) => {
  const match = typeof value === "string" ? /^(\d{1,9})(?:\.(\d{1,3}))?$/.exec(value) : null;
  if (!match) return refused('an amount in quotes with at most three decimal places, such as "0.60"', value);
  return BigInt(match[1] ?? "0") * 1000n + BigInt((match[2] ?? "").padEnd(3, "0"));
};

const url: Reader<string> = (value) =>
  typeof value === "string" && /^https?:\/\//.test(value) && URL.canParse(value)
    ? value
    : refused("an http:// or https:// address", value);

const DEVICE = /^(auto|cpu|echo|(cuda|tensorrt|webgpu):\d{1,2})$/;
const device: Reader<string | readonly string[]> = (value) => {
  const list = Array.isArray(value) ? value : [value];
  const good = list.length > 0 && list.every((item) => typeof item === "string" && DEVICE.test(item));
  return good
    ? (value as string | string[])
    : refused("auto, cpu, echo, cuda:N, tensorrt:N, webgpu:N or a list", value);
};

const address: Reader<Address> = (value) => {
  const match = typeof value === "string" ? /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(value) : null;
  const port = Number(match?.[2]);
  if (!match || port > 65_535) return refused('HOST:PORT, such as "127.0.0.1:9464"', value);
  return { host: (match[1] ?? "").replace(/^\[|\]$/g, ""), port };
};

const LLM: Keys<LlmConfig> = {
  baseUrl: { key: "base_url", read: url },
  protocol: { key: "protocol", read: oneOf("responses", "chat") },
  model: { key: "model", read: text },
  apiKeyEnv: { key: "api_key_env", read: text },
  connectSeconds: { key: "connect_seconds", read: seconds, fallback: 5 },
  firstByteSeconds: { key: "first_byte_seconds", read: seconds, fallback: 60 },
  idleSeconds: { key: "idle_seconds", read: seconds, fallback: 60 },
  totalSeconds: { key: "total_seconds", read: seconds, fallback: 1800 },
  messageMarginTokens: { key: "message_margin_tokens", read: integer(0, 1_000_000), fallback: 16 },
  imageTokens: { key: "image_tokens", read: integer(0, 1_000_000), fallback: 2048 },
  inputNanosPerToken: { key: "input_usd_per_mtok", read: rate },
  cachedInputNanosPerToken: { key: "cached_input_usd_per_mtok", read: rate },
  outputNanosPerToken: { key: "output_usd_per_mtok", read: rate },
};

const ROBOT: Keys<RobotConfig> = {
  replicas: { key: "replicas", read: integer(1, 64), fallback: 1 },
  slots: { key: "slots", read: integer(1, 65_536), fallback: undefined },
  device: { key: "device", read: device, fallback: "auto" },
  threads: { key: "threads", read: integer(1, 256), fallback: 1 },
  allowReference: { key: "allow_reference", read: flag, fallback: false },
  promptNanosPerToken: { key: "prompt_usd_per_mtok", read: rate, fallback: 500n },
  cachedPromptNanosPerToken: { key: "cached_prompt_usd_per_mtok", read: rate, fallback: 50n },
  rowNanosPerRow: { key: "row_usd_per_mrow", read: rate, fallback: 40_000n },
};

/** What a `[robot."ID"]` table without any key means. */
export const ROBOT_DEFAULT: RobotConfig = Object.freeze(
  Object.fromEntries(Object.entries(ROBOT).map(([name, key]) => [name, key.fallback])) as unknown as RobotConfig,
);

/** The settings that flags, variables and the top of the file share. */
interface Settings {
  readonly host: string;
  readonly port: number;
  readonly data: string | undefined;
  readonly models: string | undefined;
  readonly ops: Address;
  readonly chunkSeconds: number;
  readonly signup: "open" | "closed";
  readonly responseDays: number;
  readonly usageDays: number;
}

const SETTINGS: Keys<Settings> = {
  host: { key: "host", read: text, fallback: DEFAULTS.host },
  port: { key: "port", read: integer(0, 65_535), fallback: DEFAULTS.port },
  data: { key: "data", read: text, fallback: undefined },
  models: { key: "models", read: text, fallback: undefined },
  ops: { key: "ops_addr", read: address, fallback: DEFAULTS.ops },
  chunkSeconds: { key: "chunk_seconds", read: chunkSeconds, fallback: LIMITS.chunkSecondsDefault },
  signup: { key: "signup", read: oneOf("open", "closed"), fallback: "closed" },
  responseDays: { key: "response_days", read: integer(1, 36_500), fallback: 30 },
  usageDays: { key: "usage_days", read: integer(1, 36_500), fallback: 400 },
};

/** A flag or variable as the type that the file would have: numbers are written as text there. */
function fromText(given: string): string | number {
  return /^\d+(\.\d+)?$/.test(given) ? Number(given) : given;
}

/** Flag over variable over file; `value` is undefined where none of them speaks. */
function override(
  file: Table,
  given: readonly { key: string; flag?: string | undefined; variable: string }[],
  env: Environment,
): Table | Problem {
  const merged: Record<string, unknown> = { ...file };
  for (const { key, flag: typed, variable } of given) {
    const said = typed ?? (env[variable] || undefined);
    if (said === undefined) continue;
    const source = typed === undefined ? variable : `--${key}`;
    const field = Object.values(SETTINGS).find((candidate) => candidate.key === key) as Key<unknown>;
    const value = field.read === text ? said : fromText(said);
    const read = field.read(value);
    if (read instanceof Problem) return new Problem(`${source} ${read.message}`, EXIT.usage);
    merged[key] = value;
  }
  return merged;
}

/** Variables of stores that this build does not have: refused, because ignoring them would lose data. */
const UNSUPPORTED = ["REDIS_URL", "TENDON_BLOBS"] as const;

async function readFile(path: string, required: boolean): Promise<Table | Problem> {
  try {
    const content = await readText(path);
    if (content !== undefined) return Bun.TOML.parse(content) as Table;
    return required ? new Problem(`there is no configuration file at ${path}`, EXIT.usage) : {};
  } catch (error) {
    return new Problem(`${path} cannot be read as TOML: ${(error as Error).message}`, EXIT.usage);
  }
}

function drillsOf(faults: string, dev: boolean): Drills | Problem {
  if (faults === "" || dev) return readDrills(faults);
  return new Problem("TENDON_FAULTS is set, but drills are for serve --dev alone; unset it", EXIT.usage);
}

function databaseUrlOf(env: Environment): string | undefined | Problem {
  const url = env.DATABASE_URL || undefined;
  if (url === undefined || (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url))) return url;
  return new Problem(
    "DATABASE_URL is not a postgres:// address; unset it to keep everything in the data folder",
    EXIT.usage,
  );
}

/** Everything that `serve` needs to know, or the first thing that is wrong. */
export async function serveConfig(flags: ServeFlags, env: Environment = process.env): Promise<ServeConfig | Problem> {
  for (const name of UNSUPPORTED) {
    if (env[name]) return new Problem(`${name} is set, but this build does not support it; unset it`, EXIT.usage);
  }
  const databaseUrl = databaseUrlOf(env);
  if (databaseUrl instanceof Problem) return databaseUrl;
  const drills = drillsOf(env.TENDON_FAULTS || "", flags.dev);
  if (drills instanceof Problem) return drills;
  const named = flags.config ?? (env.TENDON_CONFIG || undefined);
  const path = resolve(named ?? join(folders(env).config, "tendon.toml"));
  const file = await readFile(path, named !== undefined);
  if (file instanceof Problem) return file;
  const given = [
    { key: "host", flag: flags.host, variable: "TENDON_HOST" },
    { key: "port", flag: flags.port, variable: "TENDON_PORT" },
    { key: "data", flag: flags.data, variable: "TENDON_DATA" },
    { key: "models", flag: flags.models, variable: "TENDON_MODELS" },
    { key: "ops_addr", variable: "TENDON_OPS_ADDR" },
    { key: "chunk_seconds", variable: "TENDON_CHUNK_SECONDS" },
    { key: "signup", variable: "TENDON_SIGNUP" },
    { key: "response_days", variable: "TENDON_RESPONSE_DAYS" },
    { key: "usage_days", variable: "TENDON_USAGE_DAYS" },
  ];
  const merged = override(file, given, env);
  if (merged instanceof Problem) return merged;
  const settings = readTable(merged, path, SETTINGS, ["llm", "robot"]);
  if (settings instanceof Problem) return settings;
  const llm = readTables(file.llm, "llm", path, LLM);
  if (llm instanceof Problem) return llm;
  const robot = readTables(file.robot, "robot", path, ROBOT);
  if (robot instanceof Problem) return robot;
  for (const [id, { promptNanosPerToken, cachedPromptNanosPerToken }] of robot) {
    if (cachedPromptNanosPerToken <= promptNanosPerToken) continue;
    // What is held before a run is its prompt at the uncached rate: a run never costs more than it held.
    return new Problem(
      `${path}: [robot."${id}"]: cached_prompt_usd_per_mtok is above prompt_usd_per_mtok; a cached token must not cost more`,
      EXIT.usage,
    );
  }
  return Object.freeze({
    listen: { host: settings.host, port: settings.port },
    ops: settings.ops,
    dataDir: resolve(settings.data ?? folders(env).data),
    databaseUrl,
    modelsDir: settings.models === undefined ? undefined : resolve(settings.models),
    chunkSeconds: settings.chunkSeconds,
    signup: settings.signup,
    responseDays: settings.responseDays,
    usageDays: settings.usageDays,
    dev: flags.dev,
    drills,
    json: flags.json,
    credentialsPath: clientConfig(env).credentialsPath,
    llm,
    robot,
  });
}

/** `all`: a test that would be skipped for want of something is a failure. */
export function testRequirement(env: Environment = process.env): "all" | "none" {
  return env.TENDON_TEST_REQUIRE === "all" ? "all" : "none";
}
