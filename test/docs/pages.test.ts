/** README and the pages of `docs/` show configurations that work, flags that exist, and links that lead somewhere. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { COMMANDS } from "../../src/cli/commands.ts";
import { given } from "../../src/cli/frame/command.ts";
import { choose } from "../../src/cli/frame/group.ts";
import { serveConfig } from "../../src/config/serve.ts";
import { planProviders } from "../../src/service/providers.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Problem } from "../../src/std/problem.ts";
import { temporaryFolder } from "../store/temporary.ts";
import { blocksOf } from "./blocks.ts";

const ROOT = resolve(import.meta.dir, "../..");
const PAGES = ["README.md", ...[...new Bun.Glob("docs/*.md").scanSync(ROOT)].toSorted()];

/** Anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  const headings = [...text.matchAll(/^##+ (.+)$/gm)].map(([, title = ""]) => title.toLowerCase());
  return headings.map((title) => title.replaceAll(/[^\w\s-]/g, "").replaceAll(" ", "-"));
}

/** The words of a shell line up to a pipe or a comment. */
function wordsOf(line: string): string[] {
  const words = [...line.matchAll(/"[^"]*"|\S+/g)].map(([word]) => word.replaceAll('"', ""));
  const end = words.findIndex((word) => word === "|" || word === "#");
  return end < 0 ? words : words.slice(0, end);
}

async function faultOf([, name = "", ...argv]: string[]): Promise<string | undefined> {
  const named = await COMMANDS[name]?.();
  if (named === undefined) return `no command ${name}`;
  const chosen = choose(named, argv);
  const parsed = chosen instanceof Problem ? chosen : given(chosen.command, chosen.argv);
  return parsed instanceof Problem ? parsed.message : undefined;
}

for (const path of PAGES) {
  describe(path, async () => {
    const text = await Bun.file(join(ROOT, path)).text();
    const blocks = blocksOf(text);

    test("says first which questions it answers", () => {
      const [, , opening = ""] = text.split("\n");
      expect(opening).toMatch(path === "README.md" ? /^Serves robot action models\./ : /^This page answers: /);
    });

    test("links to pages, headings and files that are there", async () => {
      const lost: string[] = [];
      for (const [, link = ""] of text.matchAll(/\]\(([^):]+)\)/g)) {
        const [file = "", anchor] = link.split("#");
        const target = file === "" ? join(ROOT, path) : join(ROOT, dirname(path), file);
        if (!existsSync(target)) lost.push(link);
        else if (anchor !== undefined && !anchorsOf(await Bun.file(target).text()).includes(anchor)) lost.push(link);
      }
      const named = [...text.matchAll(/`((?:src|docs|native|bench|test|models)\/[\w./-]*)`/g)];
      lost.push(...named.map(([, file = ""]) => file).filter((file) => !existsSync(join(ROOT, file))));
      expect(lost).toEqual([]);
    });

    test("shows commands and flags that exist", async () => {
      const code = blocks.filter(({ language }) => language === "sh").map((block) => block.code);
      const lines = code.join("").replaceAll("\\\n", " ").split("\n");
      const faults = lines.filter((line) => line.startsWith("tendon ")).map((line) => faultOf(wordsOf(line)));
      expect((await Promise.all(faults)).filter((fault) => fault !== undefined)).toEqual([]);
    });

    test("shows tables of tendon.toml that serve takes", async () => {
      await using folder = await temporaryFolder();
      for (const { code } of blocks.filter(({ language }) => language === "toml")) {
        const file = join(folder.path, "tendon.toml");
        await Bun.write(file, code);
        const secrets = [...code.matchAll(/^client_secret_env = "(\w+)"/gm)].map(([, name = ""]) => [name, "a secret"]);
        const env = { HOME: folder.path, ...Object.fromEntries(secrets) };
        const config = await serveConfig({ config: file, dev: false, json: false }, env);
        if (config instanceof Problem) throw new Error(config.message);
        expect(planProviders(config, systemClock)).not.toBeInstanceOf(Problem);
      }
    });
  });
}

test("every proof that a page names is there", async () => {
  const { PROOFS } = await import("../../bench/prove.ts");
  const names = PROOFS.map(({ name }) => name);
  for (const path of PAGES) {
    const text = await Bun.file(join(ROOT, path)).text();
    const commands = [...text.matchAll(/`npm run prove ([a-z-]+)/g)];
    // The second column of its tables says what makes a figure.
    const makers = path === "docs/figures.md" ? [...text.matchAll(/^\|[^|]*\| `([a-z-]+)` \|/gm)] : [];
    const proofs = [...commands, ...makers].map(([, name = ""]) => name);
    expect([path, proofs.filter((name) => !names.includes(name))]).toEqual([path, []]);
  }
});
