/** `serve` with a provider starts itself anew, so that it may have more calls open than Bun allows by itself (256). */
import { expect, test } from "bun:test";
import { readFile, readlink } from "node:fs/promises";
import http from "node:http";
import { ScriptedProvider } from "../llm/scripted-provider.ts";
import { Place, type Server } from "./program.ts";

const ID = "llm-a-5.3:superfast";
const CALLS = 300;
const ODD = { ODD: "a=b \n🤖", EMPTY: "" };

function configuration(provider: ScriptedProvider): string {
  return `[llm."${ID}"]\nbase_url = "${provider.url}"\nprotocol = "chat"\nmodel = "tiny"\n`;
}

/** Resolves when all calls have reached the provider, which answers none. */
async function callAtOnce(server: Server, provider: ScriptedProvider): Promise<void> {
  provider.otherwise = { kind: "hang" };
  const agent = new http.Agent({ maxSockets: CALLS });
  const headers = { authorization: `Bearer ${server.ready.api_key}`, "content-type": "application/json" };
  for (let call = 0; call < CALLS; call += 1) {
    const request = http.request(`${server.ready.url}/v1/responses`, { method: "POST", agent, headers });
    request.on("error", () => {});
    request.end(JSON.stringify({ model: ID, input: "Hi", max_output_tokens: 16 }));
  }
  while (provider.exchanges.length < CALLS) await Bun.sleep(5);
  agent.destroy();
}

test("it is the same process with its words, environment and outputs, and 300 calls are open at once", async () => {
  await using provider = await ScriptedProvider.start();
  await using place = await Place.make();
  await Bun.write(place.path("tendon.toml"), configuration(provider));
  const server = await place.serve(["--config", "tendon.toml", "--data", "my data"], ODD);
  const of = async (name: string) => (await readFile(`/proc/${server.child.pid}/${name}`, "utf8")).split("\0");
  const words = ["serve", "--dev", "--json", "--port", "0", "--config", "tendon.toml", "--data", "my data"];
  expect((await of("cmdline")).slice(-words.length - 1)).toEqual([...words, ""]);
  const said = await of("environ");
  expect(said).toContain("BUN_CONFIG_MAX_HTTP_REQUESTS=65535");
  for (const [name, value] of Object.entries({ ...ODD, HOME: place.home })) expect(said).toContain(`${name}=${value}`);
  expect(await readlink(`/proc/${server.child.pid}/cwd`)).toBe(place.dir);
  expect(await readlink(`/proc/${server.child.pid}/fd/0`)).toBe("/dev/null");
  expect(server.ready.llm).toEqual([ID]);
  await callAtOnce(server, provider);
  expect(await server.stop()).toBe(0);
  expect(await server.child.stderr.text()).toContain('"event":"model loaded"');
}, 60_000);

test.each([
  ["a pipe with a name", "pipe", "mkfifo pipe; cat tendon.toml > pipe & exec"],
  ["its standard input", "/dev/stdin", "exec < <(cat tendon.toml); exec"],
  ["a descriptor", "/dev/fd/3", "exec 3< <(cat tendon.toml); exec"],
])(
  "a configuration that is %s is read once, and it goes on with that",
  async (_, path, shell) => {
    await using provider = await ScriptedProvider.start();
    await using place = await Place.make();
    await Bun.write(place.path("tendon.toml"), configuration(provider));
    const server = await place.serve(["--config", path], {}, ["bash", "-c", `${shell} "$@"`, "bash"]);
    expect(server.ready.llm).toEqual([ID]);
    expect(await server.stop()).toBe(0);
  },
  60_000,
);
