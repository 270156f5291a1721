/**
 * Everything that `serve` takes from flags, environment and tendon.toml. Flags win over `TENDON_*` variables, which win over
 * the file. Strict: an unknown key is a problem that names the nearest known one. The result is frozen.
 */
import { join, resolve } from "node:path";
import { type StaticDecode, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Drills, readDrills } from "../drill.ts";
import { LIMITS } from "../limits.ts";
import { LOOPBACK } from "../std/networks.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { BLOB_SETTINGS, blobOptions } from "./blobs.ts";
import { fieldFault, readTable, readToml } from "./check.ts";
import { clientConfig, type Environment, environment, folders } from "./environment.ts";
import { hostPort, networks, oneOf, seconds, text, whole } from "./fields.ts";
import { GpuTable, gpuTable } from "./gpu.ts";
import { LlmTable, llmConfig } from "./llm.ts";
import { OidcTable, oidcConfig } from "./oidc.ts";
import { RobotTable, robotConfig, robotTables } from "./robot.ts";

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

export const DEFAULTS = { host: "127.0.0.1", port: 8080 } as const;

/** Keys at the top of the file. Each has a variable, `TENDON_` and its name in capitals; some have a flag. */
const SETTINGS = {
  host: text(DEFAULTS.host),
  port: whole(0, 65_535, DEFAULTS.port),
  data: Type.Optional(text()),
  models: Type.Optional(text()),
  ops_addr: hostPort("127.0.0.1:9464"),
  chunk_seconds: seconds(LIMITS.chunkSecondsMax, LIMITS.chunkSecondsDefault),
  unpaid_seconds: seconds(LIMITS.unpaidSecondsMax, LIMITS.unpaidSecondsDefault),
  signup: oneOf(["open", "closed"], "closed"),
  trusted_proxies: networks(LOOPBACK),
  connections_max: whole(16, 1_000_000, LIMITS.connectionsMaxDefault),
  connections_per_address: whole(1, 1_000_000, LIMITS.networkConnectionsMaxDefault),
  response_days: whole(1, 36_500, 30),
  usage_days: whole(1, 36_500, 400),
  tls_cert: Type.Optional(text()),
  tls_key: Type.Optional(text()),
  ...BLOB_SETTINGS,
};

/** `table` has a default: TypeBox fills in the defaults inside a record only then. */
const tables = <S extends TSchema>(kind: string, table: S) =>
  Type.Record(Type.String(), table, { expected: `tables, each of the form [${kind}."ID"]`, default: {} });

const FILE = Type.Object(
  {
    ...SETTINGS,
    gpu: GpuTable,
    oidc: Type.Optional(OidcTable),
    llm: tables("llm", LlmTable),
    robot: tables("robot", RobotTable),
  },
  { additionalProperties: false },
);

export type ServeConfig = ReturnType<typeof serveSettings>;

/** Everything that `serve` needs to know, or the first thing that is wrong. */
export async function serveConfig(flags: ServeFlags, env: Environment = environment()): Promise<ServeConfig | Problem> {
  const read = await readAll(flags, env);
  return read instanceof Problem ? read : serveSettings(read.settings, flags, env, read.decided);
}

/** The same as it would stand in the file, with every default; and what is set in the environment alone, by name: all of it is secret. */
export async function effectiveSettings(flags: ServeFlags, env: Environment = environment()) {
  const read = await readAll(flags, env);
  if (read instanceof Problem) return read;
  const { settings, decided } = read;
  const { blobs, configPath } = decided;
  const { gpu, llm, robot, oidc, ...top } = Value.Encode(FILE, settings);
  return {
    configPath,
    top: {
      ...top,
      data: resolve(settings.data ?? folders(env).data),
      ...(blobs && { s3_path_style: blobs.pathStyle ? "on" : "off" }),
    },
    gpu: gpuTable(gpu),
    oidc,
    llm,
    robot: Object.fromEntries(robotTables(robot)),
    secrets: SECRETS.filter((name) => env[name]),
  };
}

const SECRETS = ["DATABASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"] as const;

async function readAll(flags: ServeFlags, env: Environment) {
  const unsupported = UNSUPPORTED.find((name) => env[name]);
  if (unsupported) {
    return new Problem(`${unsupported} is set, but this build does not support it; unset it`, EXIT.usage);
  }
  const databaseUrl = databaseUrlOf(env);
  if (databaseUrl instanceof Problem) return databaseUrl;
  const drills = drillsOf(env.TENDON_FAULTS || "", flags.dev);
  if (drills instanceof Problem) return drills;
  const named = flags.config ?? (env.TENDON_CONFIG || undefined);
  const path = resolve(named ?? join(folders(env).config, "tendon.toml"));
  const file = await readToml(path, named !== undefined);
  if (file instanceof Problem) return file;
  const overrides = overridesOf(flags, env);
  if (overrides instanceof Problem) return overrides;
  const settings = readTable(FILE, { ...file, ...overrides }, path);
  if (settings instanceof Problem) return settings;
  const secret = settings.oidc?.client_secret_env;
  if (secret !== undefined && !env[secret]) {
    return new Problem(
      `${path}: [oidc] takes its client's secret from ${secret}, which is not set; set it`,
      EXIT.usage,
    );
  }
  if ((settings.tls_cert === undefined) !== (settings.tls_key === undefined)) {
    const [here, missing] = settings.tls_cert === undefined ? ["KEY", "CERT"] : ["CERT", "KEY"];
    return new Problem(`TENDON_TLS_${here} is set, but TENDON_TLS_${missing} is not; set both, or neither`, EXIT.usage);
  }
  const blobs = blobOptions(settings, env);
  if (blobs instanceof Problem) return blobs;
  return { settings, decided: { configPath: path, databaseUrl, drills, blobs } };
}

/** Variables of stores that this build does not have: refused, because ignoring them would lose data. */
const UNSUPPORTED = ["REDIS_URL"] as const;

function databaseUrlOf(env: Environment): string | undefined | Problem {
  const url = env.DATABASE_URL || undefined;
  if (url === undefined || (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url))) return url;
  return new Problem(
    "DATABASE_URL is not a postgres:// address; unset it to keep everything in the data folder",
    EXIT.usage,
  );
}

function drillsOf(faults: string, dev: boolean): Drills | Problem {
  if (faults === "" || dev) return readDrills(faults);
  return new Problem("TENDON_FAULTS is set, but drills are for serve --dev alone; unset it", EXIT.usage);
}

/** What flags and variables say, in the types of the file; each is checked here, so that a message names its source. */
function overridesOf(flags: ServeFlags, env: Environment): Record<string, string | number> | Problem {
  const { host, port, data, models } = flags;
  const typed: Readonly<Record<string, string | undefined>> = { host, port, data, models };
  const overrides: Record<string, string | number> = {};
  for (const [key, schema] of Object.entries<TSchema>(SETTINGS)) {
    const variable = `TENDON_${key.toUpperCase()}`;
    const said = typed[key] ?? (env[variable] || undefined);
    if (said === undefined) continue;
    const isNumber = (schema.type === "integer" || schema.type === "number") && /^\d+(\.\d+)?$/.test(said);
    const value = isNumber ? Number(said) : said;
    const fault = fieldFault(schema, value);
    if (fault !== undefined) {
      return new Problem(`${typed[key] === undefined ? variable : `--${key}`} ${fault}`, EXIT.usage);
    }
    overrides[key] = value;
  }
  return overrides;
}

function serveSettings(
  file: StaticDecode<typeof FILE>,
  flags: ServeFlags,
  env: Environment,
  { configPath, databaseUrl, drills, blobs }: Exclude<Awaited<ReturnType<typeof readAll>>, Problem>["decided"],
) {
  return Object.freeze({
    /** Absolute path of tendon.toml, whether it is there or not. */
    configPath,
    listen: Object.freeze({ host: file.host, port: file.port }),
    ops: Object.freeze(file.ops_addr),
    /** PEM files of the certificate, absolute paths; undefined: no TLS. */
    tls: tlsFiles(file.tls_cert, file.tls_key),
    /** Absolute path of the data folder. */
    dataDir: resolve(file.data ?? folders(env).data),
    /** Unix socket on which the running service answers the operator's commands, absolute path. */
    controlPath: join(resolve(file.data ?? folders(env).data), "control.sock"),
    /** Address of a PostgreSQL database; undefined: the store is in the data folder. A secret: it may hold a password. */
    databaseUrl,
    /** The object store of runs; undefined: they are in the data folder. Secrets: its credentials. */
    blobs,
    /** Absolute path of the bundles' folder; undefined: those that ship with the executable. */
    modelsDir: file.models === undefined ? undefined : resolve(file.models),
    chunkSeconds: file.chunk_seconds,
    unpaidSeconds: file.unpaid_seconds,
    signup: file.signup,
    /** The provider with which people sign in; undefined: with passwords alone. Its secret is one. */
    oidc: file.oidc && oidcConfig(file.oidc, env[file.oidc.client_secret_env ?? ""]?.trim()),
    proxies: file.trusted_proxies,
    connections: Object.freeze({ max: file.connections_max, networkMax: file.connections_per_address }),
    responseDays: file.response_days,
    usageDays: file.usage_days,
    dev: flags.dev,
    /** Failures to rehearse; none without `--dev`. */
    drills,
    json: flags.json,
    credentialsPath: clientConfig(env).credentialsPath,
    /** How models run on a GPU, where their tables do not say otherwise. */
    gpu: Object.freeze(file.gpu),
    llm: mapped(file.llm, llmConfig),
    /** Keys of the providers by their variables. Secrets. */
    providerKeys: providerKeys(file.llm, env),
    robot: mapped(file.robot, robotConfig),
  });
}

function tlsFiles(cert: string | undefined, key: string | undefined) {
  return cert === undefined || key === undefined ? undefined : { cert: resolve(cert), key: resolve(key) };
}

function mapped<T, R>(record: Readonly<Record<string, T>>, each: (value: T) => R): ReadonlyMap<string, R> {
  return new Map(Object.entries(record).map(([id, value]) => [id, each(value)]));
}

function providerKeys(llm: StaticDecode<typeof FILE>["llm"], env: Environment): ReadonlyMap<string, string> {
  const names = Object.values(llm).flatMap((table) => table.api_key_env ?? []);
  // A key that comes from a file often ends with a line break.
  return new Map(
    names.flatMap((name) => {
      const key = env[name]?.trim();
      return key ? [[name, key]] : [];
    }),
  );
}
