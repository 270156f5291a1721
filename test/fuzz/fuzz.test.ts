/** Everything that reads what strangers send, for ten seconds each, the kept inputs first. `npm run prove fuzz`: ten minutes each. */
import { describe, expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { testRequirement } from "../../src/config/environment.ts";
import { buildNative, hasCompiler, NATIVE_TARGETS } from "./native.ts";
import { runAll } from "./run.ts";
import { search } from "./search.ts";
import { must, type Target } from "./target.ts";
import { TARGETS } from "./targets.ts";

const SECONDS = 10;
/** Some wait for a clock or a lock now and then, so more run than there are cores. */
const AT_ONCE = availableParallelism() + 1;

describe("the search", () => {
  const WORD = "arm";
  const planted: Target = {
    name: "planted",
    guides: [],
    seeds: ["a stranger's text"],
    words: [],
    run(input) {
      const text = Buffer.from(input).toString("latin1");
      const [begin = ""] = /^(?:a(?:r(?:m)?)?)?/.exec(text) ?? [];
      must(begin !== WORD, "no text begins with the word");
      return begin;
    },
  };

  test("comes nearer to a fault by each outcome that is new, and makes the input small that shows it", async () => {
    const { failure, corpus } = await search(planted, [], { seconds: 30, seed: 1 });
    expect(Buffer.from(failure?.input ?? []).toString("latin1")).toBe(WORD);
    expect(String(failure?.error)).toContain("begins with the word");
    expect(corpus.length).toBeGreaterThan(1);
  });

  test("tries the kept inputs first, and the same ones again with the same seed", async () => {
    const tried: string[] = [];
    const watched: Target = {
      ...planted,
      run(input) {
        tried.push(Buffer.from(input).toString("latin1"));
        must(tried.length % 50 !== 0, "enough");
        return "";
      },
    };
    const kept = [Buffer.from("kept")];
    await search(watched, kept, { seconds: 30, seed: 7 });
    const first = tried.splice(0).slice(0, 50);
    await search(watched, kept, { seconds: 30, seed: 7 });
    expect(tried.slice(0, 50)).toEqual(first);
    expect(first.slice(0, 2)).toEqual(["a stranger's text", "kept"]);
  });
});

describe("ten seconds of", () => {
  const native = hasCompiler() || testRequirement() === "all" ? Object.keys(NATIVE_TARGETS) : [];
  const named = [
    ...native.map((name) => ({ name, native: true })),
    ...TARGETS.map(({ name }) => ({ name, native: false })),
  ];
  // Side by side from the first test on; each test waits for its own.
  const begin = async () => {
    const problem = native.length > 0 ? await buildNative() : undefined;
    if (problem !== undefined) throw new Error(problem);
    const seed = 1;
    return runAll(
      named.map((one) => ({ native: one.native, run: { name: one.name, seconds: SECONDS, seed } })),
      AT_ONCE,
    );
  };
  let begun: ReturnType<typeof begin> | undefined;

  for (const [index, one] of named.entries()) {
    test(`${one.native ? "native " : ""}${one.name}`, async () => {
      begun ??= begin();
      const report = await (await begun)[index];
      expect(report?.failure).toBeUndefined();
      expect(report?.unseen).toEqual([]);
      expect(report?.runs).toBeGreaterThan(0);
    }, 600_000);
  }
});
