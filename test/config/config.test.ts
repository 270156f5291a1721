import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { clientConfig, type Environment, folders } from "../../src/config/environment.ts";
import { ROBOT_DEFAULT } from "../../src/config/robot.ts";
import { type ServeFlags, serveConfig } from "../../src/config/serve.ts";
import { Problem } from "../../src/std/problem.ts";
import { temporaryFolder } from "../store/temporary.ts";

/** The example of contract section 10. */
const EXAMPLE = `
[llm."llm-a-5.3:superfast"]
base_url = "http://127.0.0.1:9000/v1"
protocol = "chat"                      # or "responses"
model = "the-provider's-name"
api_key_env = "PROVIDER_KEY"
first_byte_seconds = 60                # connecting included
idle_seconds = 60
total_seconds = 1800
message_margin_tokens = 16             # reserved per message, above its bytes
image_tokens = 2048                    # reserved per image
input_usd_per_mtok = "0.60"
cached_input_usd_per_mtok = "0.11"
output_usd_per_mtok = "2.20"

[robot."vendorB/molmoact2:yam"]
replicas = 1
slots = 8
device = "auto"
allow_reference = false
prompt_usd_per_mtok = "0.50"
cached_prompt_usd_per_mtok = "0.05"
row_usd_per_mrow = "40.00"
`;

const noFlags: ServeFlags = { dev: false, json: false };

/** The configuration from a file with `toml`, or the problem's exit and message. */
async function read(toml: string, env: Environment = {}, flags: Partial<ServeFlags> = {}) {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "tendon.toml");
  await writeFile(path, toml);
  return await serveConfig({ ...noFlags, config: path, ...flags }, { HOME: dir.path, ...env });
}

async function message(toml: string, env: Environment = {}, flags: Partial<ServeFlags> = {}): Promise<string> {
  const result = await read(toml, env, flags);
  return result instanceof Problem ? `${result.exit} ${result.message}` : "accepted";
}

test("the contract's example is accepted; money becomes nano-dollars per token", async () => {
  const config = await read(EXAMPLE);
  if (config instanceof Problem) throw new Error(config.message);
  expect(config.llm.get("llm-a-5.3:superfast")).toEqual({
    baseUrl: "http://127.0.0.1:9000/v1",
    protocol: "chat",
    model: "the-provider's-name",
    apiKeyEnv: "PROVIDER_KEY",
    firstByteSeconds: 60,
    idleSeconds: 60,
    totalSeconds: 1800,
    jobRetrySeconds: 3600,
    connections: 4096,
    stream: true,
    outputLimitField: "max_tokens",
    refuses: [],
    imageUrls: false,
    messageMarginTokens: 16,
    imageTokens: 2048,
    rates: { prompt: 600n, cachedPrompt: 110n, completion: 2200n },
  });
  expect(config.robot.get("vendorB/molmoact2:yam")).toEqual({
    replicas: 1,
    slots: 8,
    parkedMibMax: undefined,
    device: "auto",
    threads: undefined,
    gpu: {},
    allowReference: false,
    rates: { prompt: 500n, cachedPrompt: 50n, completion: 40_000n },
  });
});

test("sessions beyond the slots are parked in as much memory as the file says; 0 turns it off", async () => {
  const parked = async (line: string) => {
    const config = await read(`[robot."a/b:yam"]\n${line}`);
    return config instanceof Problem ? config.message : config.robot.get("a/b:yam")?.parkedMibMax;
  };
  expect([await parked("parked_mib_max = 0"), await parked("parked_mib_max = 4096"), await parked("")]).toEqual([
    ...[0, 4096, undefined],
  ]);
  expect(await parked("parked_mib_max = -1")).toContain("parked_mib_max");
});

test("defaults without any file; the result is frozen", async () => {
  await using dir = await temporaryFolder();
  const config = await serveConfig(noFlags, { HOME: dir.path });
  if (config instanceof Problem) throw new Error(config.message);
  expect(config).toMatchObject({
    listen: { host: "127.0.0.1", port: 8080 },
    ops: { host: "127.0.0.1", port: 9464 },
    dataDir: join(dir.path, ".local/share/tendon"),
    modelsDir: undefined,
    chunkSeconds: 10,
    signup: "closed",
    responseDays: 30,
    usageDays: 400,
    credentialsPath: join(dir.path, ".config/tendon/credentials.json"),
  });
  expect(Object.isFrozen(config)).toBe(true);
});

test("a table without any key has every default, and no price", async () => {
  const config = await read('[robot."a/b"]');
  if (config instanceof Problem) throw new Error(config.message);
  expect(config.robot.get("a/b")).toEqual(ROBOT_DEFAULT);
  expect(Object.isFrozen(config.robot.get("a/b"))).toBe(true);
  expect(config.robot.get("a/b")?.rates).toEqual({ prompt: undefined, cachedPrompt: undefined, completion: undefined });
});

test("flags win over TENDON_* variables, which win over the file", async () => {
  const toml = 'port = 1\nhost = "file"\nchunk_seconds = 3.5\nops_addr = "[::1]:7"\n';
  const env = { TENDON_PORT: "2", TENDON_HOST: "", TENDON_OPS_ADDR: "127.0.0.1:0" };
  expect(await read(toml)).toMatchObject({
    listen: { host: "file", port: 1 },
    chunkSeconds: 3.5,
    ops: { host: "::1", port: 7 },
  });
  expect(await read(toml, env)).toMatchObject({
    listen: { host: "file", port: 2 },
    ops: { host: "127.0.0.1", port: 0 },
  });
  expect(await read(toml, env, { port: "0", data: "/data" })).toMatchObject({ listen: { port: 0 }, dataDir: "/data" });
});

test("an unknown key is an error that names the nearest known one", async () => {
  expect([
    await message("prot = 5"),
    await message('[robot."a/b"]\nreplica = 1'),
    await message('[llm."a"]\nbase_ulr = "http://x"'),
    await message('[llm."a"]\nconnect_seconds = 5'),
    await message("[robots]"),
  ]).toEqual([
    expect.stringMatching(/^2 .*unknown key 'prot'; did you mean 'port'\?/),
    expect.stringMatching(/^2 .*\[robot."a\/b"\]: unknown key 'replica'; did you mean 'replicas'\?/),
    expect.stringMatching(/^2 .*unknown key 'base_ulr'; did you mean 'base_url'\?/),
    expect.stringMatching(/^2 .*unknown key 'connect_seconds'; did you mean 'connections'\?/),
    expect.stringMatching(/^2 .*unknown key 'robots'; did you mean 'robot'\?/),
  ]);
});

test("every configuration error exits with 2 and says what was expected", async () => {
  const robot = (line: string) => message(`[robot."a/b"]\n${line}`);
  const messages = [
    await message("port = 99999"),
    await message('port = "1"'),
    await message("", { TENDON_PORT: "x" }),
    await message("", {}, { port: "-1" }),
    await message("", { TENDON_OPS_ADDR: "9464" }),
    await message("", { TENDON_CHUNK_SECONDS: "0" }),
    await message("", { TENDON_SIGNUP: "maybe" }),
    await message("", { TENDON_TRUSTED_PROXIES: "10.0.0.0/8, proxy.example" }),
    await message("port ="),
    await message("", {}, { config: "/nowhere/tendon.toml" }),
    await message("robot = 5"),
    await message("[robot]\nx = 5"),
    await robot("replicas = 0"),
    await robot('device = "gpu"'),
    await robot("device = []"),
    await robot("allow_reference = 1"),
    await robot("row_usd_per_mrow = 40.00"),
    await robot('row_usd_per_mrow = "-1"'),
    await robot('row_usd_per_mrow = "0.0001"'),
    await message('[llm."a"]\nbase_url = "http://x"'),
    await message('[llm."a"]\nbase_url = "x"'),
    ...(await Promise.all(["DATABASE_URL", "REDIS_URL", "TENDON_FAULTS"].map((name) => message("", { [name]: "x" })))),
  ];
  for (const text of messages) expect(text).toMatch(/^2 ./);
  expect(messages[2]).toContain("TENDON_PORT must be a whole number from 0 to 65535");
  expect(messages[3]).toContain("--port must be a whole number");
  expect(messages[7]).toEndWith(' 2001:db8::7", or "none", not "10.0.0.0/8, proxy.example"');
  expect(messages[10]).toEndWith('tables, each of the form [robot."ID"], not 5');
  expect(messages[11]).toEndWith('[robot."x"] must be a table, not 5');
  expect(messages[12]).toEndWith('[robot."a/b"]: replicas must be a whole number from 1 to 64, not 0');
  expect(messages[16]).toContain('in quotes with at most three decimal places, such as "0.60"');
});

test("the parts of a provider's address that no request would carry are refused", async () => {
  const read = (address: string) => message(`[llm."a"]\nbase_url = "${address}"\nprotocol = "chat"\nmodel = "m"`);
  const good = ["http://[::1]:8000/v1", "https://provider.example", "https://provider.example/a%20b/@c/"];
  for (const address of good) expect(await read(address)).toBe("accepted");
  for (const address of [
    "https://user:password@provider.example/v1",
    "https://user@provider.example/v1",
    "https://provider.example/v1?version=2",
    "https://provider.example/v1?",
    "https://provider.example/v1#part",
    "https://provider.example/a b",
    "https://",
  ])
    expect(await read(address)).toMatch(/^2 .*base_url must be an .* without user, query and fragment, not /);
});

test("a provider's key is what its variable holds, without the line break of the file that it came from", async () => {
  const keys = async (PROVIDER_KEY: string) => {
    const config = await read(EXAMPLE, { PROVIDER_KEY });
    if (config instanceof Problem) throw new Error(config.message);
    return [...config.providerKeys];
  };
  expect(await keys(" sk-1\r\n")).toEqual([["PROVIDER_KEY", "sk-1"]]);
  expect(await keys(" \n")).toEqual([]);
});

test("folders follow the XDG rules", async () => {
  const env = { HOME: "/h", XDG_CONFIG_HOME: "/c", XDG_DATA_HOME: "relative", XDG_CACHE_HOME: "/k" };
  expect(folders(env)).toEqual({ config: "/c/tendon", data: "/h/.local/share/tendon", cache: "/k/tendon" });
  expect(clientConfig({ ...env, TENDON_API_KEY: "k", TENDON_BASE_URL: "" })).toEqual({
    apiKey: "k",
    baseUrl: undefined,
    credentialsPath: "/c/tendon/credentials.json",
  });
});

test("the file in $XDG_CONFIG_HOME/tendon is read when none is named; TENDON_CONFIG names one", async () => {
  await using dir = await temporaryFolder();
  await mkdir(join(dir.path, ".config/tendon"), { recursive: true });
  await writeFile(join(dir.path, ".config/tendon/tendon.toml"), "port = 11");
  await writeFile(join(dir.path, "other.toml"), "port = 12");
  expect(await serveConfig(noFlags, { HOME: dir.path })).toMatchObject({ listen: { port: 11 } });
  const named = { HOME: dir.path, TENDON_CONFIG: join(dir.path, "other.toml") };
  expect(await serveConfig(noFlags, named)).toMatchObject({ listen: { port: 12 } });
});
