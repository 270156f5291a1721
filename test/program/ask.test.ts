/** Language models as the person at a terminal has them: `serve --dev` with a provider, then `ask`, `models` and `doctor`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ScriptedProvider } from "../llm/scripted-provider.ts";
import { isClear, Place, type Server } from "./program.ts";

const KEY = { PROVIDER_KEY: "sk-scripted-0123456789" };

let provider: ScriptedProvider;
let place: Place;
let server: Server;

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
  server = await place.serve(["--config", "tendon.toml"], KEY);
}, 60_000);

afterAll(async () => {
  await server.stop();
  await place[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

async function stored(id: string): Promise<Record<string, unknown>> {
  for (;;) {
    const headers = { authorization: `Bearer ${server.ready.api_key}` };
    const response = await (await fetch(`${server.ready.url}/v1/responses/${id}`, { headers })).json();
    const { status } = response as { status: string };
    if (status !== "queued" && status !== "in_progress") return response as Record<string, unknown>;
    await Bun.sleep(20);
  }
}

describe("tendon ask", () => {
  test("prints the answer as it comes, and nothing else on either output", async () => {
    provider.play({ kind: "answer", reasoning: "Hm.", deltas: ["One, ", "two, ", "three 🤖."], gapMs: 150 });
    const child = place.spawn(["ask", "Count."]);
    const pieces: string[] = [];
    for await (const bytes of child.stdout) pieces.push(Buffer.from(bytes).toString());
    expect([pieces.join(""), pieces.length > 1]).toEqual(["One, two, three 🤖.\n", true]);
    expect([await child.exited, await child.stderr.text()]).toEqual([0, ""]);
    const sent = provider.exchanges.at(-1);
    expect(sent?.headers.authorization).toBe(`Bearer ${KEY.PROVIDER_KEY}`);
    expect(sent?.body).toMatchObject({ model: "tiny" });
  });

  test("--json prints the response as one object, --async waits for a background model", async () => {
    provider.play(
      { kind: "answer", text: "Live." },
      { kind: "answer", text: "Later." },
      { kind: "answer", text: "J." },
    );
    const live = await place.run(["ask", "Hello?", "--json"]);
    expect([live.code, live.stderr, JSON.parse(live.stdout)]).toMatchObject([
      0,
      "",
      { object: "response", status: "completed", model: "llm-a-5.3:superfast", output_text: "Live." },
    ]);
    expect(await place.run(["ask", "Hello?", "--async"])).toEqual({ code: 0, stdout: "Later.\n", stderr: "" });
    const background = await place.run(["ask", "Hello?", "--model", "llm-a-5.3:async", "--json"]);
    expect(JSON.parse(background.stdout)).toMatchObject({ background: true, status: "completed", output_text: "J." });
  });

  test("an answer that is cut short by its limit is printed, and is no success", async () => {
    provider.play({ kind: "answer", text: "Once upon", finish: "length" });
    const { code, stdout, stderr } = await place.run(["ask", "Tell."]);
    expect([code, stdout, stderr]).toEqual([1, "Once upon\n", expect.stringContaining("ask for a shorter one")]);
  });

  test("a failure is one clear line with its code", async () => {
    provider.play({ kind: "refuse", status: 500 }, { kind: "refuse", status: 400 });
    const cases: [words: string[], env: Record<string, string>, code: number, says: string][] = [
      [["Hello?"], {}, 1, "upstream_unavailable: "],
      [["Hello?", "--async"], {}, 1, "upstream_rejected: "],
      [["Hello?", "--model", "llm-c-k3:superfast"], {}, 1, "unconfigured: "],
      [["Hello?", "--model", "llm-c-k3"], {}, 1, "did you mean"],
      [[], {}, 2, "expected one TEXT"],
      [["two", "words"], {}, 2, "needs quotes"],
      [["Hello?", "--async", "--model", "llm-c-k3:superfast"], {}, 2, "end in :async"],
      [["Hello?"], { HOME: place.path("nobody") }, 3, "tendon login"],
      [["Hello?"], { TENDON_API_KEY: "tdn_wrong" }, 3, "invalid_api_key"],
      [["Hello?", "--base-url", "http://127.0.0.1:1"], {}, 4, "cannot reach"],
    ];
    for (const [words, env, code, says] of cases) {
      const ended = await place.run(["ask", ...words], env);
      expect([words, ended]).toEqual([words, { code, stdout: "", stderr: expect.stringContaining(says) }]);
      expect([words, ended.stderr.trim().split("\n").length, isClear(ended.stderr)]).toEqual([words, 1, true]);
    }
  });

  for (const words of [[], ["--async"]]) {
    test(`Ctrl-C leaves${words.map((word) => ` ${word}`).join("")}: the id is said, and the service finishes the answer`, async () => {
      provider.play({ kind: "answer", deltas: ["Begun", " and done."], gapMs: 600 });
      const before = provider.exchanges.length;
      const child = place.spawn(["ask", "Hello?", ...words]);
      while (provider.exchanges.length === before) await Bun.sleep(5);
      if (words.length === 0) await child.stdout.getReader().read();
      else await Bun.sleep(300);
      child.kill("SIGINT");
      const said = await child.stderr.text();
      expect(await child.exited).toBe(130);
      const id = /resp_\w+/.exec(said)?.[0] ?? "";
      expect(said).toContain(`${server.ready.url}/v1/responses/${id}`);
      expect(await stored(id)).toMatchObject({ status: "completed", output_text: "Begun and done." });
    });
  }
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

test("without a provider serve and ask say so, and what would change it", async () => {
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
  const asked = await bare.run(["ask", "Hello?"]);
  expect(asked).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("unconfigured: ") });
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  expect(await child.stderr.text()).toMatch(/info no language model is configured answer=unconfigured file=\S+\n/);
}, 30_000);

test("a background response that runs at SIGTERM is put back, and answered by the next start", async () => {
  const { key, url } = { key: server.ready.api_key, url: server.ready.url };
  provider.play({ kind: "hang_inside", after: 1 });
  const before = provider.exchanges.length;
  const accepted = await fetch(`${url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "llm-a-5.3:async", input: "Later." }),
  });
  const { id } = (await accepted.json()) as { id: string };
  while (provider.exchanges.length === before) await Bun.sleep(5);
  expect(await server.stop()).toBe(0);
  await provider.exchanges[before]?.closed;
  provider.play({ kind: "answer", text: "At last." });
  server = await place.serve(["--config", "tendon.toml"], KEY);
  expect(await stored(id)).toMatchObject({ status: "completed", output_text: "At last." });
  expect(provider.exchanges).toHaveLength(before + 2);
});
