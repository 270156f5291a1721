/**
 * The search: an input that reaches a line, or leads to an outcome, which none has reached before is kept and changed further. The
 * lines come from JavaScriptCore's control flow profiler, which `BUN_JSC_useControlFlowProfiler=1` switches on.
 */
import * as jsc from "bun:jsc";
import { Dice, mutate } from "./mutate.ts";
import type { Target } from "./target.ts";

export interface Found {
  readonly runs: number;
  /** Inputs that have reached something new, the given ones first. */
  readonly corpus: readonly Uint8Array[];
  /** The smallest input that fails, and why. */
  readonly failure: { readonly input: Uint8Array; readonly error: unknown } | undefined;
  /** Guides of which no input ran a line: the search is blind to them. */
  readonly unseen: readonly string[];
}

/** More of them are noise. */
const OUTCOMES_MAX = 1_000;

export interface Bounds {
  readonly seconds: number;
  readonly seed: number;
}

export async function search(target: Target, kept: readonly Uint8Array[], { seconds, seed }: Bounds): Promise<Found> {
  const dice = new Dice(seed);
  const words = [...target.words, ...(await literals(target.guides))];
  const given = [...target.seeds.map(bytesOf), ...kept];
  const corpus: Uint8Array[] = [];
  const outcomes = new Set<string>();
  let [runs, before] = [0, ""];
  const unseen = () => target.guides.filter((file) => unreached(file) === undefined);
  const endMs = performance.now() + seconds * 1_000;
  for (;;) {
    const next = given[runs];
    if (next === undefined && performance.now() >= endMs) return { runs, corpus, failure: undefined, unseen: unseen() };
    const input = next ?? mutate(dice.pick(corpus), corpus, words, dice);
    runs += 1;
    const { error, outcome = "" } = await tried(target, input);
    if (error !== undefined) {
      const failure = { input: await smallest(target, input), error };
      return { runs, corpus, failure, unseen: unseen() };
    }
    const reached = reachedBy(target.guides);
    const led = outcomes.size < OUTCOMES_MAX && !outcomes.has(outcome);
    if (next !== undefined || led || reached !== before) corpus.push(input);
    if (led) outcomes.add(outcome);
    before = reached;
  }
}

interface Tried {
  readonly outcome?: string;
  /** Why the input fails; undefined: it does not. */
  readonly error?: unknown;
}

async function tried(target: Target, input: Uint8Array): Promise<Tried> {
  try {
    return { outcome: await target.run(input) };
  } catch (error) {
    return { error: error ?? new Error("it failed without a word") };
  }
}

/** Cuts pieces out as long as it still fails. */
async function smallest(target: Target, input: Uint8Array): Promise<Uint8Array> {
  let best = input;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length; ) {
      const cut = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      if ((await tried(target, cut)).error !== undefined) best = cut;
      else at += size;
    }
  }
  return best;
}

/** Bun has it, its types do not. */
const coverage = (jsc as unknown as { readonly codeCoverageForFile: (file: string) => string }).codeCoverageForFile;

/** The lines of a file that no input has reached, as a text that changes when one is; undefined for a file that has not run at all. */
function unreached(file: string): string | undefined {
  try {
    return coverage(file);
  } catch {
    return undefined;
  }
}

function reachedBy(guides: readonly string[]): string {
  return guides.map(unreached).join("\n");
}

/** Texts of the code itself: what it compares with is what inputs should have. */
async function literals(files: readonly string[]): Promise<string[]> {
  const sources = await Promise.all(files.map((file) => Bun.file(file).text()));
  const found = sources.flatMap((source) => [...source.matchAll(/"([^"\\\n]{1,24})"/g)].map(([, text = ""]) => text));
  return [...new Set(found)].filter((text) => !text.startsWith("."));
}

function bytesOf(seed: string | Uint8Array): Uint8Array {
  return typeof seed === "string" ? new TextEncoder().encode(seed) : seed;
}
