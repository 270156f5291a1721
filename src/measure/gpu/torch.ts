/**
 * The same architecture in PyTorch, compiled and with CUDA graphs, timed by events in a process of its own: bench/peers/torch_policy.py, with
 * the sizes of the model's folder. It is there in a checkout alone.
 */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { parseJson, textAt } from "../../client/json.ts";
import { childEnvironment } from "../../config/environment.ts";
import { Problem } from "../../std/problem.ts";

const ROOT = join(import.meta.dir, "../../..");
const SCRIPT = join(ROOT, "bench/peers/torch_policy.py");

/** Medians, in milliseconds. */
export interface TorchFigures {
  readonly version: string;
  /** `cuda events` or `wall clock`; compiled or not. */
  readonly how: string;
  /** How many it has drawn. */
  readonly weights: number;
  readonly batches: readonly { readonly batch: number; readonly prefill: number; readonly denoise: number }[];
}

interface Asked {
  readonly python: string;
  readonly id: string;
  /** The device of the measurement: an NVIDIA one, or the CPU. */
  readonly device: string;
  readonly weights: string;
  readonly batches: readonly number[];
  readonly rounds: number;
}

export async function torchFigures(asked: Asked): Promise<TorchFigures | Problem> {
  if (!existsSync(SCRIPT))
    return new Problem("the comparison with PyTorch needs a checkout: bench/peers/torch_policy.py");
  const model = await modelFile(asked.id);
  if (model === undefined) return new Problem(`no model.json of ${asked.id} is in models/ or bench/models/`);
  const card = /^(?:cuda|tensorrt):(\d+)$/.exec(asked.device)?.[1];
  const flags = {
    device: card === undefined ? "cpu" : `cuda:${card}`,
    type: asked.weights === "bf16" || asked.weights === "f16" ? asked.weights : "f32",
    batches: asked.batches.join(","),
    rounds: String(asked.rounds),
  };
  const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawned([asked.python, SCRIPT, model, ...words]);
  if (child === undefined) return new Problem(`'${asked.python}' cannot be run`);
  const [said, wrong, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) return new Problem(`PyTorch ended with ${code}: ${wrong.trim().split("\n").at(-1) ?? ""}`);
  return figuresOf(parseJson(said.trim().split("\n").at(-1) ?? "")) ?? new Problem("PyTorch's figures cannot be read");
}

function spawned(words: string[]) {
  try {
    return Bun.spawn(words, { env: childEnvironment({}), stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  } catch {
    return undefined;
  }
}

function figuresOf(said: unknown): TorchFigures | undefined {
  const [version, how] = [textAt(said, "version"), textAt(said, "how")];
  const { batches, weights } = (said ?? {}) as Partial<TorchFigures>;
  if (!version || !how || weights === undefined || !Array.isArray(batches)) return undefined;
  return { version, how, weights, batches };
}

/** The model.json of an id, in the folders of a checkout. */
async function modelFile(id: string): Promise<string | undefined> {
  for (const folder of ["bench/models", "models"]) {
    for (const name of await readdir(join(ROOT, folder)).catch(() => [])) {
      const path = join(ROOT, folder, name, "model.json");
      const text = await Bun.file(path)
        .text()
        .catch(() => "");
      if (textAt(parseJson(text), "id") === id) return path;
    }
  }
  return undefined;
}
