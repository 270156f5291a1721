/** Providers of language models as the person at a terminal sees them: with `serve --dev`, `models` and `doctor`. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ScriptedProvider } from "../llm/scripted-provider.ts";
import { Place } from "./program.ts";

const KEY = { PROVIDER_KEY: "sk-scripted-0123456789" };

let provider: ScriptedProvider;
let place: Place;

/** Two ids behind the scripted provider. */
function configuration(url: string): string {
  const table = (id: string) =>
    `[llm."${id}"]\nbase_url = "${url}"\nprotocol = "chat"\nmodel = "tiny"\napi_key_env = "PROVIDER_KEY"\n`;
  return table("llm-a-5.3:superfast") + table("llm-a-5.3:async");
}

beforeAll(async () => {
  provider = await ScriptedProvider.start();
  place = await Place.make();
  await Bun.write(place.path("tendon.toml"), configuration(provider.url));
});

afterAll(async () => {
  await place[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

test("tendon models lists each language model with its provider and whether it can answer", async () => {
  const read = async (env: Record<string, string>) => {
    const { code, stdout } = await place.run(["models", "--config", "tendon.toml", "--json"], env);
    expect(code).toBe(0);
    return JSON.parse(stdout) as { data: object[]; llm: { id: string; state: string }[] };
  };
  const { data, llm } = await read(KEY);
  expect([data.length, llm.map(({ state }) => state)]).toEqual([
    6,
    ["configured", "not_configured", "configured", "not_configured", "not_configured"],
  ]);
  expect(llm[2]).toEqual({
    ...{ id: "llm-a-5.3:superfast", stream: "live", max_output_tokens_default: 8192, state: "configured" },
    provider: { host: new URL(provider.url).host, protocol: "chat", model: "tiny", api_key_env: "PROVIDER_KEY" },
  } as (typeof llm)[2]);
  expect((await read({})).llm[0]?.state).toBe("key_missing");
  const { stdout, stderr } = await place.run(["models", "--config", "tendon.toml"]);
  expect(stdout).toMatch(
    /^llm-a-5\.3:async +in the background +key missing: set PROVIDER_KEY +127\.0\.0\.1:\d+ +chat +tiny$/m,
  );
  expect(stdout).toMatch(/^llm-c-k3:superfast +live +not configured/m);
  expect(stderr).toContain("PROVIDER_KEY");
  expect(stdout + stderr).not.toContain(KEY.PROVIDER_KEY);
});

test("tendon doctor asks each provider, and says what to do about one that is away", async () => {
  const check = async (config: string, env: Record<string, string>, id = "llm-a-5.3:superfast") => {
    await Bun.write(place.path("doctor.toml"), `${config}${SIX_ECHOES}`);
    const { stdout } = await place.run(["doctor", "--config", "doctor.toml", "--json"], env);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; ok: boolean; found: string; todo?: string }[] };
    return checks.find(({ name }) => name === id);
  };
  expect(await check(configuration(provider.url), KEY)).toMatchObject({
    ok: true,
    found: expect.stringContaining("tiny"),
  });
  expect(await check(configuration("http://127.0.0.1:1/v1"), KEY)).toMatchObject({
    ok: false,
    found: expect.stringContaining("127.0.0.1:1 is not reached"),
    todo: expect.stringContaining("base_url"),
  });
  expect(await check(configuration(provider.url), {})).toMatchObject({
    ok: false,
    found: expect.stringContaining("PROVIDER_KEY"),
  });
  const none = await check("", {}, "language models");
  expect(none).toMatchObject({ ok: true, todo: expect.stringContaining('[llm."llm-a-5.3:superfast"]\nbase_url = ') });
}, 60_000);

/** Robot models that load at once. */
const SIX_ECHOES = [
  ...["vendorA/dreamzero-astra:yam", "vendorB/molmoact2:yam", "vendorC/rho:yam"],
  ...["vendorD/isaac-0.5:yam", "vendorE/pi0.5:yam", "vendorF/picasso:yam"],
]
  .map((id) => `[robot."${id}"]\ndevice = "echo"\n`)
  .join("");

test("without a provider serve says so, and what would change it", async () => {
  await using bare = await Place.make();
  const child = bare.spawn(["serve", "--dev", "--port", "0"]);
  let said = "";
  for await (const bytes of child.stdout) {
    said += Buffer.from(bytes).toString();
    if (said.includes("model = ")) break;
  }
  const file = `${bare.home}/.config/tendon/tendon.toml`;
  expect(said).toContain(`lines into ${file}`);
  const lines = said.split("\n").filter((line) => line.startsWith("    "));
  expect(Bun.TOML.parse(lines.join("\n"))).toMatchObject({ llm: { "llm-a-5.3:superfast": { protocol: "chat" } } });
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(await child.stderr.text()).toMatch(/info no language model is configured answer=unconfigured file=\S+\n/);
}, 30_000);
