/**
 * Runs one proof: `npm run prove NAME` (full size) or `npm run prove NAME -- --small`. Without NAME it lists them. Some take one word
 * behind their name.
 *
 * The figures of a full run replace this machine's earlier ones in bench/results/<machine>.csv. Exit 1 when a limit is not kept.
 */
import { mkdir } from "node:fs/promises";
import { loadavg } from "node:os";
import { dirname, join } from "node:path";
import { print, printNote } from "../src/cli/frame/print.ts";
import { origin } from "../src/measure/origin.ts";
import { EXIT, Problem } from "../src/std/problem.ts";
import { ab } from "./ab.ts";
import { arrival } from "./arrival.ts";
import { chunk } from "./chunk.ts";
import { decode } from "./decode.ts";
import { diskFaults } from "./disk-faults.ts";
import { episodes } from "./episodes.ts";
import { fuzz } from "./fuzz.ts";
import { hostile } from "./hostile.ts";
import { published } from "./import.ts";
import { publishedFull } from "./import-full.ts";
import { publishedSpeed } from "./import-speed.ts";
import { interference } from "./interference.ts";
import { kill, llmKill, runsKill } from "./kills.ts";
import { llm } from "./llm.ts";
import { loop } from "./loop.ts";
import { memory } from "./memory.ts";
import { money } from "./money.ts";
import { nativeMemory } from "./native-memory.ts";
import { overhead } from "./overhead.ts";
import { overload } from "./overload.ts";
import { parking } from "./parking.ts";
import { peers } from "./peers.ts";
import type { Proof, Size } from "./proof.ts";
import { machineName, mergeResults } from "./results.ts";
import { runs } from "./runs.ts";
import { runsLarge } from "./runs-large.ts";
import { sim } from "./sim.ts";
import { start } from "./start.ts";
import { weights } from "./weights.ts";

export const PROOFS: readonly Proof[] = [
  ...[loop, memory, decode, start, chunk, arrival, episodes, hostile, sim, kill, ab, peers],
  ...[money, overhead, overload, interference, llm, llmKill],
  ...[runs, runsKill, runsLarge, nativeMemory, diskFaults, fuzz, weights, parking],
  ...[published, publishedSpeed, publishedFull],
];

async function main(argv: readonly string[]): Promise<number> {
  const [name, argument, ...rest] = argv.filter((word) => word !== "--small");
  const size: Size = argv.includes("--small") ? "small" : "full";
  const proof = PROOFS.find((one) => one.name === name);
  if (proof === undefined || rest.length > 0 || (argument !== undefined && proof.argument === undefined)) {
    const named = PROOFS.map((one) => ({ ...one, words: `${one.name} ${one.argument ?? ""}` }));
    const list = named.map(({ words, question }) => `  ${words.padEnd(14)} ${question}`).join("\n");
    await print(`npm run prove NAME [-- --small], where NAME is:\n${list}`);
    return name === undefined ? EXIT.done : EXIT.usage;
  }
  const from = await origin();
  await print(`${proof.name}: ${proof.question}`);
  const { cpu, cores } = from.machine;
  const load = loadavg()[0]?.toFixed(2);
  await print(`${from.date}, commit ${from.commit}, ${cpu}, ${cores} cores, load before ${load}, size ${size}\n`);
  const outcome = await proof.run(size, argument);
  if (outcome instanceof Problem) {
    await printNote(`error: ${outcome.message}`);
    return outcome.exit;
  }
  await print(outcome.text);
  if (size === "full") {
    const path = join(import.meta.dir, "results", `${machineName(from)}.csv`);
    await mkdir(dirname(path), { recursive: true });
    const file = Bun.file(path);
    const before = (await file.exists()) ? await file.text() : "";
    await Bun.write(path, mergeResults(before, proof.name, from, outcome.rows));
    await print(`written to ${path}`);
  }
  // The small size shows that the proof runs; its figures are too few to be judged.
  if (size === "small") await print("small size: nothing is judged");
  if (outcome.pass === undefined || size === "small") return EXIT.done;
  await print(outcome.pass ? "PASS" : "FAIL");
  return outcome.pass ? EXIT.done : EXIT.failed;
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
