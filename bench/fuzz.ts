/** Does anything that a stranger sends break what reads it? See test/fuzz and native/fuzz. */
import { availableParallelism } from "node:os";
import { Problem } from "../src/std/problem.ts";
import { buildNative, hasCompiler, NATIVE_TARGETS } from "../test/fuzz/native.ts";
import { type Report, runAll } from "../test/fuzz/run.ts";
import { TARGETS } from "../test/fuzz/targets.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

/** Duration for each target. The tests of the targets search for ten seconds each, so the small size only shows that it runs. */
const SECONDS = { small: 1, full: 600 } as const;

export const fuzz: Proof = {
  name: "fuzz",
  question: "Does anything that a stranger sends break what reads it, in ten minutes of search for each reader?",
  async run(size) {
    const native = hasCompiler() ? Object.keys(NATIVE_TARGETS) : [];
    const problem = native.length > 0 ? await buildNative() : undefined;
    if (problem !== undefined) return new Problem(`the fuzz targets in Rust cannot be built: ${problem}`);
    const run = (name: string) => {
      const keep = size === "full";
      // Another search each day, and the same one again on the same day.
      return { name, seconds: SECONDS[size], seed: size === "full" ? day() : 1, keep };
    };
    const searches = [
      ...native.map((name) => ({ native: true, run: run(name) })),
      ...TARGETS.map(({ name }) => ({ native: false, run: run(name) })),
    ];
    const reports = await Promise.all(runAll(searches, availableParallelism()));
    const left = native.length > 0 ? "" : "\nWithout a C++ compiler (c++) the readers in Rust were left out.\n";
    const texts = reports.flatMap(({ name, failure }) =>
      failure ? `\n${name}: ${failure.input}\n${failure.error}\n` : [],
    );
    return judged(reports.flatMap(figures), { below: left + texts.join("") });
  },
};

function figures({ name, runs, corpus, failure }: Report): Figure[] {
  return [
    { measure: `${name}: inputs tried`, value: runs, unit: "1", least: 1 },
    { measure: `${name}: inputs that reached something new`, value: corpus, unit: "1" },
    { measure: `${name}: faults`, value: failure ? 1 : 0, unit: "1", limit: 0 },
  ];
}

function day(): number {
  return Math.floor(Date.now() / 86_400_000);
}
