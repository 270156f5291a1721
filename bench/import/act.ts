/**
 * An ACT chunk of an imported bundle against LeRobot's own code on the same two threads: `bun bench/import/act.ts BUNDLE CHECKPOINT PYTHON`.
 * Processes are fresh and alternate; a figure is the median of five, each the median of thirty chunks.
 */
import { join } from "node:path";
import { readBundle } from "../../src/bundle/read.ts";
import { withEngine } from "../../src/measure/engine.ts";
import { observationsOf } from "../../src/measure/gpu/observations.ts";
import { inferred } from "../../src/measure/inference.ts";
import { present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";

const [THREADS, ROUNDS, WARM, CHUNKS] = [2, 5, 5, 30];

function median(values: readonly number[]): number {
  return present(values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)], "a value");
}

function ok<Value>(value: Value | Problem): Value {
  if (value instanceof Problem) throw new Error(value.message);
  return value;
}

/** Milliseconds of a chunk: the model and the way back to robot units, without the decoding of pictures. */
async function own(dir: string): Promise<number> {
  const bundle = ok(await readBundle(dir));
  const observed = present((await observationsOf(bundle))[0], "an observation");
  const times = await withEngine(1, async (engine) => {
    const model = ok(await engine.load({ bundle, device: "cpu", replicas: 1, threads: THREADS, slots: 1 }));
    const taken: number[] = [];
    for (let chunk = 0; chunk < WARM + CHUNKS; chunk += 1) {
      const { micros } = ok(await inferred(model, observed, { turn: 0, step: 0 })).result;
      taken.push((micros.prefill + micros.denoise + micros.encode) / 1000);
    }
    return taken.slice(WARM);
  });
  return median(ok(times));
}

async function printed(command: readonly string[]): Promise<{ ms: number; apart?: number }> {
  const process = Bun.spawn([...command], { stdout: "pipe", stderr: "inherit" });
  const text = await new Response(process.stdout).text();
  if ((await process.exited) !== 0) throw new Error(`${command.join(" ")} failed`);
  return JSON.parse(present(text.trim().split("\n").at(-1), "a line"));
}

const [bundle = "", checkpoint, python = "python3"] = Bun.argv.slice(2);
if (checkpoint === undefined) {
  process.stdout.write(`${JSON.stringify({ ms: await own(bundle) })}\n`);
} else {
  const [ours, theirs, apart]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push((await printed(["bun", import.meta.path, bundle])).ms);
    const torch = await printed([python, join(import.meta.dir, "act_torch.py"), checkpoint, bundle]);
    theirs.push(torch.ms);
    apart.push(torch.apart ?? Number.NaN);
  }
  process.stdout.write(
    `${JSON.stringify({ tendon_ms: median(ours), lerobot_ms: median(theirs), apart: Math.max(...apart) })}\n`,
  );
}
