/**
 * The repository's own rules, as a test: import direction, one home per outside package and per ambient thing, file
 * length, names, no dead files, nothing that speaks of a machine. A rule is tightened, never exempted.
 */
import { describe, expect, test } from "bun:test";
import { dirname, join, normalize, relative, resolve } from "node:path";
import { COMMANDS } from "../src/cli/commands.ts";
import { commentsOf, longSentences, textsIn } from "./words.ts";

const ROOT = resolve(import.meta.dir, "..");

const tracked = Bun.spawnSync(["git", "ls-files", "--cached", "--others", "--exclude-standard"], { cwd: ROOT })
  .stdout.toString()
  .split("\n")
  .filter((path) => path !== "" && Bun.file(join(ROOT, path)).size > 0);

const text = new Map<string, string>();
for (const path of tracked) {
  if (/\.(ts|mjs|rs|cu|h|py|md|json|toml|sql)$|^\.ci\/run$|^\.npmrc$/.test(path))
    text.set(path, await Bun.file(join(ROOT, path)).text());
}

const sources = [...text].filter(([path]) => path.startsWith("src/") && path.endsWith(".ts"));
const code = [...text].filter(([path]) => /\.(ts|mjs|rs|cu|h)$/.test(path));

/** Specifiers of all imports, static, dynamic and of types. */
function importsOf(source: string): string[] {
  const pattern = /^(?:import|export)\s[\w\s{},*$]*?\bfrom "([^"]+)"|^import "([^"]+)"|import\("([^"]+)"\)/gm;
  return [...source.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

/** Files whose code, comments left out, matches. */
function users(pattern: RegExp): string[] {
  const bare = (source: string) => source.replace(/\/\*[\s\S]*?\*\/|(^|\s)\/\/.*$/gm, "");
  return sources.filter(([, source]) => pattern.test(bare(source))).map(([path]) => path);
}

const folderNames = (depth: number, below = "src/") =>
  new Set(sources.flatMap(([path]) => (path.startsWith(below) ? [path.split("/").slice(0, -1)[depth] ?? ""] : [])));

/** The products, as the composition root lists them. None imports another. */
const PRODUCTS = [
  ...new Set(
    [...(text.get("src/service/products.ts") ?? "").matchAll(/"\.\.\/(\w+)\//g)].map(([, folder = ""]) => folder),
  ),
];

/** Folders of which none imports another of its group. */
const APART = [PRODUCTS, ["engine", "bundle"]];

/** Folders of src/ from top to bottom; a folder imports its own, those of lower levels, and the files at the root. */
const LEVELS = [
  ["cli", "setup"],
  ["measure"],
  ["client"],
  ["service"],
  PRODUCTS,
  ["account"],
  ["http"],
  ["web"],
  ["charge", "engine"],
  ["cluster", "bundle", "store"],
  ["config"],
  ["std"],
];

function levelOf(folder: string): number {
  return LEVELS.findIndex((folders) => folders.includes(folder));
}

/** Paths of the project's own files that a file imports. */
function targetsOf(path: string, source: string): string[] {
  return importsOf(source)
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => relative(ROOT, normalize(join(ROOT, dirname(path), specifier))));
}

/** What of a file's imports breaks the direction. */
function upward(path: string, source: string): string[] {
  const folder = path.split("/")[1] ?? "";
  if (levelOf(folder) < 0) return [];
  return targetsOf(path, source)
    .filter((target) => {
      const other = target.split("/")[1] ?? "";
      if (target.split("/").length < 3 || other === folder) return false;
      const isApart = APART.some((group) => group.includes(folder) && group.includes(other));
      return levelOf(other) < levelOf(folder) || isApart;
    })
    .map((target) => `${path} → ${target}`);
}

/** Files that import themselves through others, imports of types included. */
function inCircles(files: readonly (readonly [path: string, source: string])[]): string[] {
  const graph = new Map(files.map(([path, source]) => [path, targetsOf(path, source)]));
  const reached = (start: string) => {
    const seen = new Set(graph.get(start));
    // A set that is iterated gives what is added meanwhile too.
    for (const path of seen) for (const target of graph.get(path) ?? []) seen.add(target);
    return seen;
  };
  return [...graph.keys()].filter((path) => reached(path).has(path));
}

describe("imports", () => {
  test("every folder of src/ has a level", () => {
    expect([...folderNames(1)].filter((folder) => folder !== "" && levelOf(folder) < 0)).toEqual([]);
  });

  test("point down", () => {
    expect(sources.flatMap(([path, source]) => upward(path, source))).toEqual([]);
  });

  test("run in no circle", () => {
    expect(inCircles(sources)).toEqual([]);
  });

  test("inside a product only its transport imports the HTTP kit", () => {
    const strays = sources
      .filter(([path]) => [...PRODUCTS, "account"].includes(path.split("/")[1] ?? ""))
      .filter(([path]) => !/^src\/\w+\/(http\.ts$|(http|socket|compatible|pages|docs|oauth)\/)/.test(path))
      // The check of keys, which the kit takes as a function.
      .filter(([path]) => path !== "src/account/authenticate.ts")
      .flatMap(([path, source]) => targetsOf(path, source).map((target) => `${path} → ${target}`))
      .filter((edge) => / → src\/http\//.test(edge));
    expect(strays).toEqual([]);
  });

  test("the client knows the service by its wire alone: it imports nothing of how requests are answered", () => {
    const allowed = /^src\/(client|account|config|std)\/|^src\/limits\.ts$/;
    const strays = sources
      .filter(([path]) => path.startsWith("src/client/"))
      .flatMap(([path, source]) => targetsOf(path, source).map((target) => `${path} → ${target}`))
      .filter((edge) => !allowed.test(edge.split(" → ")[1] ?? ""));
    expect(strays).toEqual([]);
  });

  test("where bytes of runs lie knows nothing of records, and nothing of what is served but runs knows where", () => {
    const edges = sources.flatMap(([path, source]) => targetsOf(path, source).map((target) => ({ path, target })));
    const upwards = edges.filter(
      ({ path, target }) => path.startsWith("src/runs/blob/") && !/^src\/(runs\/blob|config|std)\//.test(target),
    );
    const strangers = edges.filter(
      ({ path, target }) => target.startsWith("src/runs/blob/") && !/^src\/(runs|service|cli)\//.test(path),
    );
    expect([upwards, strangers]).toEqual([[], []]);
  });

  test("the rules of directions and of circles can fail", () => {
    const files = ["b", "c", "b"].map(
      (to, at) => [`src/${"abc"[at]}.ts`, `import type { x } from "./${to}.ts";`] as const,
    );
    expect(inCircles(files)).toEqual(["src/b.ts", "src/c.ts"]);
    expect(upward("src/std/x.ts", 'import { y } from "../http/y.ts";')).toEqual(["src/std/x.ts → src/http/y.ts"]);
    expect(upward("src/runs/x.ts", 'await import("../robot/y.ts");')).toEqual(["src/runs/x.ts → src/robot/y.ts"]);
    expect(upward("src/engine/x.ts", 'import { y } from "../bundle/y.ts";')).toEqual([
      "src/engine/x.ts → src/bundle/y.ts",
    ]);
  });

  /** Outside package → where it may be imported. */
  const HOMES: Readonly<Record<string, RegExp>> = {
    "@aws-sdk/client-s3": /^src\/runs\/blob\/(s3|s3\/(assembling|store))\.ts$/,
    elysia: /^src\/http\/(app|listen)\.ts$/,
    "@elysiajs/openapi": /^src\/http\/document\//,
    "bun:sqlite": /^src\/(store\/|std\/file-lock\.ts$)/,
    "bun:ffi": /^src\/engine\/binding\.ts$/,
    sharp: /^src\/measure\/sample\/drawing\.ts$/,
    "@bufbuild/protobuf": /^src\/bundle\/protobuf\.ts$/,
    "eventsource-parser": /^src\/(llm\/provider\/reader|client\/ask)\.ts$/,
    openai: /^src\/llm\/output\/(events|object)\.ts$/,
    "openid-client": /^src\/account\/oidc\.ts$/,
    "hyparquet-writer": /^src\/cli\/runs-export\/lerobot\/parquet\.ts$/,
    marked: /^src\/http\/document\/markdown\.ts$/,
    "@sinclair/typebox": new RegExp(`^src/(${PRODUCTS.join("|")}|account|bundle|client|config|http|service)/`),
    "onnxruntime-node": /^$/,
    ioredis: /^src\/store\//,
    postgres: /^src\/store\//,
    "prom-client": /^src\/std\/metrics\.ts$/,
  };

  test("each outside package has its home", () => {
    const strays = sources.flatMap(([path, source]) =>
      importsOf(source)
        .map((specifier) => Object.keys(HOMES).find((name) => specifier === name || specifier.startsWith(`${name}/`)))
        .filter((name): name is string => name !== undefined && !HOMES[name]?.test(path))
        .map((name) => `${path} imports ${name}`),
    );
    expect(strays).toEqual([]);
  });

  test("no other outside package is imported", () => {
    const known = (specifier: string) =>
      /^(\.|node:|bun$|bun:)/.test(specifier) ||
      Object.keys(HOMES).some((name) => specifier === name || specifier.startsWith(`${name}/`));
    expect(
      sources.flatMap(([path, source]) =>
        importsOf(source)
          .filter((one) => !known(one))
          .map((one) => `${path}: ${one}`),
      ),
    ).toEqual([]);
  });
});

describe("ambient things have one home each", () => {
  test("the environment", () => expect(users(/process\.env\b|Bun\.env\b/)).toEqual(["src/config/environment.ts"]));
  test("wall and monotonic time", () =>
    expect(users(/Date\.now\(|new Date\(\)|performance\.now\(/)).toEqual(["src/std/clock.ts"]));
  // Wall clocks jump (contract section 1). Whatever lasts for a span counts seen time (std/seen-clock.ts) or the monotonic clock. A
  // file stands here because it says a time to people or programs, dates a row, counts by the calendar, or compares with times of files.
  test("wall time is read for the calendar alone", () => {
    const shown = [
      "account/dev",
      "account/device-login",
      "account/identities",
      "account/keys",
      "account/people",
      "account/oauth/oauth",
      "account/pages/account",
      "account/pages/keys",
      "robot/http/chat",
      "llm/record",
      "robot/attempt",
      "runs/finish",
      "runs/put",
    ];
    const months = ["charge/charges", "runs/meter", "runs/runs", "runs/uploads"];
    const dates = ["llm/provider/client", "std/ids", "std/log"];
    const files = ["std/file-digest", "engine/payload", "runs/sweep"];
    const anchors = ["service/upkeep", "std/clock", "std/seen-clock"];
    const known = new Set([...shown, ...months, ...dates, ...files, ...anchors].map((name) => `src/${name}.ts`));
    const serving = users(/\bunixMs\b|\bunixSeconds\(/).filter((path) => !/^src\/(cli|client|measure)\//.test(path));
    expect(serving.toSorted()).toEqual([...known].toSorted());
  });
  test("Math.random has none", () => expect(users(/Math\.random\(/)).toEqual([]));
  test("HTTP status numbers stand in the table", () => {
    expect(users(/\bstatus:\s*[45]\d\d\b/)).toEqual([]);
  });
});

describe("files", () => {
  const lines = code.map(([path, source]) => ({ path, count: source.trimEnd().split("\n").length }));
  const share = (max: number) => lines.filter(({ count }) => count < max).length / lines.length;

  test("no file of code passes 400 lines", () => {
    expect(lines.filter(({ count }) => count > 400)).toEqual([]);
  });

  test("half have under 100 lines, nine of ten under 250", () => {
    expect(share(100)).toBeGreaterThanOrEqual(0.5);
    expect(share(250)).toBeGreaterThanOrEqual(0.9);
  });

  test("names are kebab-case and say what is inside", () => {
    const names = code.map(([path]) => path).filter((path) => !path.endsWith("build.rs"));
    const odd = names.filter((path) => {
      const name = path.split("/").at(-1) ?? "";
      return (
        !/^[a-z0-9]+([-_][a-z0-9]+)*(\.test|\.d)?\.(ts|mjs|rs|cu|h)$/.test(name) ||
        /^(utils?|helpers?|managers?|common)\b/.test(name)
      );
    });
    expect(odd).toEqual([]);
  });

  test("every module of src/ is imported by another or is an entry point", () => {
    const entries = new Set([
      "src/main.ts",
      "src/setup/check.ts",
      "src/setup/compile.ts",
      "src/service/writer.ts",
      "src/service/blob-thread.ts",
      "src/store/sqlite/checkpointer.ts",
      "src/runs/player/main.ts",
    ]);
    const imported = new Set(
      [...text]
        .filter(([path]) => path.endsWith(".ts"))
        .flatMap(([path, source]) =>
          importsOf(source)
            .filter((one) => one.startsWith("."))
            .map((one) => relative(ROOT, normalize(join(ROOT, dirname(path), one)))),
        ),
    );
    // Declarations are no modules: the compiler finds them by itself.
    const modules = sources.map(([path]) => path).filter((path) => !path.endsWith(".d.ts"));
    expect(modules.filter((path) => !imported.has(path) && !entries.has(path))).toEqual([]);
  });

  test("each begins by saying what it is; a test file may leave it to its name", () => {
    const silent = code
      .filter(([path, source]) => !/^(#!.*\n)?(\/\*\*|\/\/!)/.test(source) && !path.endsWith(".test.ts"))
      .map(([path]) => path);
    expect(silent).toEqual([]);
  });

  test("nothing promises later work or switches a check off without a reason", () => {
    const words = new RegExp(
      [
        "TO" + "DO",
        "FIX" + "ME",
        "X" + "XX",
        "as a" + "ny\\b",
        "@ts-" + "ignore",
        "@ts-" + "expect-error",
        "\\b(test|describe)\\.(on" + "ly|sk" + "ip)\\(",
      ].join("|"),
    );
    expect(code.filter(([, source]) => words.test(source)).map(([path]) => path)).toEqual([]);
    const reasonless = code
      .filter(([, source]) => /biome-ignore [^:]*$|biome-ignore [^:]*:\s*$/m.test(source))
      .map(([path]) => path);
    expect(reasonless).toEqual([]);
  });

  test("nothing speaks of a machine, and no lock file records an address", () => {
    const paths = new RegExp(["/(work|farm|root)/", "/tmp/bash_", "arti" + "factory"].join("|"));
    const leaks = [...text]
      .filter(([path, source]) => path !== "test/tidy.test.ts" && paths.test(source))
      .map(([path]) => path);
    expect(leaks).toEqual([]);
    expect(text.get("package-lock.json")).not.toMatch(/"resolved": *"https?:/);
  });

  test("the lists of settled numbers agree: Rust, TypeScript and package", async () => {
    const { version } = await import("../package.json");
    expect(text.get("native/Cargo.toml")).toContain(`\nversion = "${version}"`);
    expect(text.get("native/Cargo.toml")).toMatch(/ort = \{ version = "=/);
    const { dependencies, devDependencies } = await import("../package.json");
    for (const pinned of Object.values({ ...dependencies, ...devDependencies }))
      expect(pinned).toMatch(/^\d+\.\d+\.\d+$/);
  });
});

/** Numbers here only ever fall. */
describe("words", () => {
  const SENTENCE_WORDS_MAX = 30;
  const long = (texts: readonly string[]) => texts.flatMap((one) => longSentences(one, SENTENCE_WORDS_MAX));
  const comments = code
    .filter(([path]) => /^(src|native|test|bench)\//.test(path))
    .flatMap(([path, source]) => commentsOf(path, source));

  test("README has at most 190 lines and 14,000 bytes", () => {
    const readme = text.get("README.md") ?? "";
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(190);
    expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(14_000);
  });

  test("no sentence of README or of a page has over 30 words", () => {
    const pages = [...text].filter(([path]) => path === "README.md" || path.startsWith("docs/"));
    expect(long(pages.map(([, page]) => page.replaceAll(/^```[\s\S]*?^```$/gm, "")))).toEqual([]);
  });

  test("no sentence of a command's help has over 30 words", async () => {
    const texts: string[] = [];
    for (const load of Object.values(COMMANDS)) {
      const named = await load();
      texts.push(named.summary);
      for (const { summary, details = [], flags } of "commands" in named ? named.commands : [named])
        texts.push(summary, details.join(" "), ...Object.values(flags).map(({ about }) => about));
    }
    expect(texts.length).toBeGreaterThan(150);
    expect(long(texts)).toEqual([]);
  });

  test("no sentence of an error message has over 30 words", () => {
    const calls = /\b(?:new (?:Failure|Problem|\w+(?:Refusal|Problem|Failure))|row)\(/g;
    const texts = sources.flatMap(([, source]) => textsIn(source, calls));
    expect(texts.length).toBeGreaterThan(400);
    expect(long(texts)).toEqual([]);
  });

  test("comments start with a noun or a verb, and do not end with a comma", () => {
    const starts = comments.filter((one) => /^(Of|As|By|From|Where|Whose|Told|Also|Nobody)\b/.test(one));
    expect(starts).toEqual([]);
    expect(comments.filter((comment) => comment.endsWith(","))).toEqual([]);
  });

  test("few sentences of comments have over 30 words", () => {
    expect(long(comments).length).toBeLessThanOrEqual(44);
  });

  test("no text has a phrase of the dialect that the project spoke once", () => {
    const phrases =
      /\b(so[ ]many|who[e]ver|stands[ ]for|tells[ ]of|in[ ]turns|at[ ]rest|all[ ]that may|of[ ]its own)\b/i;
    const prose = [...text].filter(([path]) => /^(src|native|test|bench|docs)\/|^README/.test(path));
    expect(prose.filter(([, one]) => phrases.test(one)).map(([path]) => path)).toEqual([]);
  });

  test("the rules of words can fail", () => {
    const source = "/** It. */\n/**\n * As\n * one,\n */\nx(); // and\n// two,\ny();\n";
    expect(commentsOf("x.ts", source)).toEqual(["It.", "As one,", "and two,"]);
    expect(commentsOf("x.py", "# Of\n# it\nx = 1  # no\n")).toEqual(["Of it", "no"]);
    const words = (count: number) => Array(count).fill("word").join(" ");
    expect(longSentences(`${words(30)}. ${words(31)}; \`a b\`.`, 30)).toEqual([`${words(31)}; code.`]);
    const call = `new Problem(\`is \${x} \` +\n "b", "c")`;
    expect(textsIn(call, /new Problem\(/g)).toEqual(["\n\nis value b\n\nc"]);
  });
});
