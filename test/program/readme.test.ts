/** README from its top, as a newcomer has it: every command block runs, and prints what README shows. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, exists, mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { testRequirement } from "../../src/config/environment.ts";
import { blocksOf, missingLines } from "../docs/blocks.ts";
import { ScriptedProvider } from "../llm/scripted-provider.ts";
import { Place } from "./program.ts";

const ROOT = resolve(import.meta.dir, "../..");
const START = "git clone URL tendon && cd tendon\nnpm start\n";
const ALIAS = 'alias tendon="$PWD/node_modules/.bin/bun $PWD/src/main.ts"\n';
const SHOWN_URL = "http://127.0.0.1:8080";

const withoutPython = Bun.which("python3") === null && testRequirement() === "none";
const blocks = blocksOf(await Bun.file(join(ROOT, "README.md")).text());
const [start, ...commands] = blocks.filter(({ language }) => language === "sh" || language === "python");

let provider: ScriptedProvider;
let place: Place;
let url: string;
let started = "";

beforeAll(async () => {
  provider = await ScriptedProvider.start();
  place = await Place.make();
  const tables = blocks.filter(({ language }) => language === "toml").map(({ code }) => code);
  const config = join(place.home, ".config/tendon/tendon.toml");
  await mkdir(dirname(config), { recursive: true });
  await Bun.write(config, tables.join("\n").replace(/^base_url = .*/m, `base_url = "${provider.url}"`));
  await Bun.write(place.path("tendon-under-test"), `#!/bin/sh\nexec ${place.shellWords} "$@"\n`);
  await chmod(place.path("tendon-under-test"), 0o755);
  const service = place.spawn(["serve", "--dev", "--port", "0"]);
  for await (const bytes of service.stdout) {
    started += Buffer.from(bytes).toString();
    if (/^ {2}sign in .*\n/m.test(started)) break;
  }
  url = /^ {2}url +(\S+)$/m.exec(started)?.[1] ?? "";
}, 60_000);

afterAll(async () => {
  await place[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

/** Runs a block in the one folder that all share, with the service under test for the shown one. */
async function run(language: string, code: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const script = code.replace(ALIAS, "").replaceAll(SHOWN_URL, url);
  const tendon = `tendon() { "${place.path("tendon-under-test")}" "$@"; }\n`;
  const shell = ["bash", "-euo", "pipefail", "-c"];
  const command =
    language === "python"
      ? [...shell, `${tendon}TENDON_API_KEY=$(tendon token) python3 -c "$0"`, script]
      : [...shell, `${tendon}${script}`];
  const child = Bun.spawn(command, {
    cwd: place.dir,
    env: { PATH: process.env.PATH ?? "", HOME: place.home, TENDON_BASE_URL: url },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, stdout, stderr };
}

test("README begins with the clone and `npm start`, which serves with --dev and prints what README shows", async () => {
  const { scripts } = await import("../../package.json");
  expect([start?.code, scripts.start]).toEqual([START, expect.stringMatching(/ src\/main\.ts serve --dev$/)]);
  expect(missingLines(start?.output ?? "", started.replaceAll(url, SHOWN_URL))).toEqual([]);
});

test("the alias of README is the program", () => {
  expect(commands[0]?.code).toStartWith(ALIAS);
  const child = Bun.spawnSync(["bash", "-O", "expand_aliases", "-c", `${ALIAS}tendon --version`], { cwd: ROOT });
  expect(child.stdout.toString()).toMatch(/^tendon \d/);
});

describe("each block in its order", () => {
  for (const { language, code, output } of commands) {
    const title = code.replace(ALIAS, "").trim().split("\n").at(-1)?.slice(0, 70) ?? "";
    test.skipIf(language === "python" && withoutPython)(title, async () => {
      provider.play({ kind: "answer", text: "Blue light is scattered most." });
      const ended = await run(language, code);
      expect([ended.code, ended.stderr.replace(/^Reference bundle: .*\n$/, "")]).toEqual([0, ""]);
      if (output !== undefined) expect([missingLines(output, ended.stdout), ended.stdout]).toEqual([[], ended.stdout]);
    });
  }

  test("leave the plot and the fetched run that README names", async () => {
    expect(await Bun.file(place.path("chunk.svg")).text()).toStartWith("<svg");
    expect(await exists(place.path("copy/episode.jsonl"))).toBe(true);
    expect(await Bun.file(place.path("copy/frames/top/000000.jpg")).bytes()).toEqual(
      await Bun.file(place.path("demo/top.jpg")).bytes(),
    );
  });
});
