/**
 * `/docs/language-models` says what the specification and the service say, and what it shows works. The configuration's own reader reads
 * its tables of tendon.toml. Its commands and programs run against a service with a scripted provider.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { testRequirement } from "../../../src/config/environment.ts";
import { LlmTable } from "../../../src/config/llm.ts";
import { type ServeConfig, serveConfig } from "../../../src/config/serve.ts";
import { Drills, readDrills } from "../../../src/drill.ts";
import text from "../../../src/llm/docs/language-models.md" with { type: "text" };
import { LLM } from "../../../src/llm/errors.ts";
import { LLM_IDS, outputTokensDefault } from "../../../src/llm/models.ts";
import { planProviders } from "../../../src/service/providers.ts";
import { systemClock } from "../../../src/std/clock.ts";
import { Problem } from "../../../src/std/problem.ts";
import { stage } from "../../robot/stage.ts";
import { temporaryFolder } from "../../store/temporary.ts";
import { LlmStage } from "../stage.ts";

const ROOT = resolve(import.meta.dir, "../../..");
const PYTHON = "python3";
const hasPython =
  Bun.which(PYTHON) !== null && Bun.spawnSync([PYTHON, "-c", "import openai"], { stderr: "ignore" }).exitCode === 0;
const absent = !hasPython && testRequirement() === "none";
const WITHOUT = "python3 has no openai; in a virtual environment whose bin is first in PATH, pip install openai";

const ANSWER = "Hello from behind the page.";

/** The code blocks of a language, in their order. */
function blocks(language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, code = ""]) => code);
}

let html: string;
let service: LlmStage;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  html = await (await (await stage()).send("/docs/language-models")).text();
  service = await LlmStage.start();
  service.provider.otherwise = { kind: "answer", text: ANSWER };
  folder = await temporaryFolder();
  const program = join(folder.path, "tendon");
  await Bun.write(program, `#!/bin/sh\nexec ${process.execPath} ${join(ROOT, "src/main.ts")} "$@"\n`);
  await chmod(program, 0o755);
  // Packages are found from the folder that a program lies in.
  await symlink(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Runs a snippet as its reader does, with the two variables that the page names. */
async function run(command: readonly string[]) {
  const child = Bun.spawn([...command], {
    cwd: ROOT,
    env: {
      PATH: `${folder.path}:${process.env.PATH}`,
      HOME: folder.path,
      TENDON_BASE_URL: service.url,
      TENDON_API_KEY: service.key,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, stdout, stderr };
}

describe("the page", () => {
  test("names every id with its kind and its default, every code, every key of the configuration, every drill", () => {
    for (const id of LLM_IDS) {
      const kind = id.endsWith(":async") ? "in the background \\| events at the end" : "live \\| events as they come";
      const tokens = outputTokensDefault(id).toLocaleString("en-US");
      expect(text).toMatch(new RegExp(`^\\| \`${id}\` \\| ${kind} \\| ${tokens} tokens out \\|$`, "m"));
    }
    const named = (word: string) => html.includes(`<code>${word}</code>`);
    const codes = Object.values(LLM).map(({ wire }) => wire);
    const drills = ["upstream_unavailable", "upstream_rejected", "upstream_cut", "upstream_slow", "job_lost"];
    const keys = Object.keys(LlmTable.properties);
    expect([...codes, ...drills, ...keys].filter((word) => !named(word))).toEqual([]);
  });

  test("tells the defaults of the configuration as they are", () => {
    const rows = [...text.matchAll(/^\| `(\w+)` \| ([^|]+) \| /gm)];
    for (const [name, { default: value, type }] of Object.entries(LlmTable.properties)) {
      const said = rows.find(([, key]) => key === name)?.[2];
      const expected = value === undefined ? /needed|no key/ : type === "array" ? /nothing/ : JSON.stringify(value);
      expect([name, said?.replaceAll("`", "")]).toEqual([name, expect.stringMatching(expected)]);
    }
  });
});

test("every table of tendon.toml is read as it stands, and is a provider", async () => {
  const tables = blocks("toml");
  expect(tables.length).toBeGreaterThanOrEqual(4);
  for (const table of [...tables, tables.join("\n")]) {
    const path = join(folder.path, "tendon.toml");
    await Bun.write(path, table);
    const env = { HOME: folder.path, PROVIDER_KEY: "sk-1" };
    const config = (await serveConfig({ config: path, dev: false, json: false }, env)) as ServeConfig;
    expect(config).not.toBeInstanceOf(Problem);
    const providers = planProviders(config, systemClock);
    expect(providers).not.toBeInstanceOf(Problem);
    expect(config.llm.size).toBeGreaterThan(0);
  }
});

test("the drills that it shows are drills", () => {
  const [faults = ""] = /TENDON_FAULTS=(\S+)/.exec(blocks("bash").at(-1) ?? "")?.slice(1) ?? [];
  const drills = readDrills(faults);
  if (!(drills instanceof Drills)) throw new Error(drills.message);
  const target = { accountId: "a", model: "", step: 0 };
  const struck = () => drills.strikes("upstream_unavailable", { ...target, sessionId: "away-1" });
  expect([struck(), struck()]).toEqual([true, false]);
  expect(drills.strikes("upstream_cut", { ...target, sessionId: "cut-1" })).toBe(true);
});

describe("the snippets", () => {
  const commands = blocks("bash").filter((code) => !code.includes("TENDON_FAULTS"));

  test("of a shell are answered", async () => {
    const [whole = "", stream = "", background = "", program = "", ...more] = commands;
    expect(more).toEqual([]);
    const sh = (code: string) => run(["bash", "-euo", "pipefail", "-c", code]);
    expect(JSON.parse((await sh(whole)).stdout)).toMatchObject({ status: "completed", output_text: ANSWER });
    expect((await sh(stream)).stdout).toMatch(
      /event: response\.created[\s\S]*"type":"response\.completed"[\s\S]*data: \[DONE\]\n\n$/,
    );
    expect(JSON.parse((await sh(background)).stdout)).toMatchObject({
      status: "completed",
      background: true,
      output_text: ANSWER,
    });
    expect(await sh(program)).toEqual({ code: 0, stdout: `${ANSWER}\n${ANSWER}\n`, stderr: "" });
  }, 30_000);

  const expected = { code: 0, stdout: `${ANSWER}\ncompleted ${ANSWER}\n`, stderr: "" };

  test("in JavaScript run with the stock openai package", async () => {
    const [code = "", ...more] = blocks("javascript");
    expect(more).toEqual([]);
    await Bun.write(join(folder.path, "snippet.mjs"), code);
    expect(await run([process.execPath, join(folder.path, "snippet.mjs")])).toEqual(expected);
  }, 30_000);

  test.skipIf(absent)(
    absent ? `in Python: skipped, ${WITHOUT}` : "in Python run with the stock openai package",
    async () => {
      const [code = "", ...more] = blocks("python");
      expect(more).toEqual([]);
      expect(await run([PYTHON, "-c", code])).toEqual(expected);
    },
    30_000,
  );
});
