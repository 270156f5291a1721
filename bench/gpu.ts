/**
 * Does the architecture that PyTorch is timed with have the weights of ours, and which is faster on this CPU?
 *
 * `npm run prove gpu -- PYTHON`, a Python with PyTorch: the comparison of `tendon bench gpu --torch` at sizes that a CPU can compute. It says
 * nothing of a GPU; there bench/gpu.sh runs the same with the full sizes. Not part of `npm test`: PyTorch is gigabytes.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../src/bundle/architecture.ts";
import { buildGraphs } from "../src/bundle/families.ts";
import { DEFAULT_BUILD } from "../src/bundle/weights.ts";
import { runGpuSuite } from "../src/measure/gpu/suite.ts";
import { median } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const ROOT = join(import.meta.dir, "..");
/** One of each family. */
const MODELS = ["molmoact2-yam", "dreamzero-astra-yam"];
const ROUNDS = { small: 2, full: 50 } as const;
/** Rows of the table of tokens are not weights that a chunk multiplies, and there are as many as somebody has words. */
const TABLE = "language.embedding";
/** There nothing is drawn of what depends on the time or the place alone: in a small world-action model these are a twelfth. */
const WEIGHTS_RATIO = { least: 0.9, limit: 1.03 } as const;

export const gpu: Proof = {
  name: "gpu",
  question: "Has the architecture in PyTorch our weights, and which of the two is faster on this CPU?",
  argument: "PYTHON",
  async run(size, python) {
    // Small, as `npm test` runs it on machines without PyTorch, our own side alone: a comparison that is left out is said.
    const torch = python ?? (size === "full" ? "python3" : undefined);
    const rows: Figure[] = [];
    for (const name of MODELS) {
      const plan = { devices: ["cpu"], models: join(ROOT, "dist/models", name), chunks: ROUNDS[size], gpu: {} };
      const measured = await runGpuSuite({ ...plan, batchMax: 1, slotsMax: 1, torch });
      if (measured instanceof Problem) return measured;
      const [one] = measured;
      const [batch] = one?.batches ?? [];
      if (one === undefined || batch === undefined) return new Problem(`${name} was not measured`);
      const ms = (station: "prefill" | "denoise") => median(batch.rounds.map((round) => round[station]));
      rows.push({ measure: `${name}: prefill and denoise`, value: ms("prefill") + ms("denoise"), unit: "ms" });
      if (torch === undefined) continue;
      if (typeof one.torch === "string") return new Problem(one.torch);
      const [other] = one.torch.batches.map(({ prefill, denoise }) => prefill + denoise);
      const model = JSON.parse(await readFile(join(ROOT, "models", name, "model.json"), "utf8")) as ModelFile;
      const ratio = (one.torch.weights - tableOf(model)) / weightsOf(model);
      rows.push(
        { measure: `${name}: the same in PyTorch`, value: other ?? Number.NaN, unit: "ms" },
        { measure: `${name}: weights in PyTorch to ours`, value: ratio, unit: "1", ...WEIGHTS_RATIO },
      );
    }
    return judged(rows, torch === undefined ? { below: "not compared with PyTorch: no Python is named\n" } : {});
  },
};

/** Of all graphs, what several use once, without the table of tokens. */
function weightsOf({ architecture, ...facts }: ModelFile): number {
  const { prefill, denoise, extend } = buildGraphs(facts, architecture, 1000, { ...DEFAULT_BUILD, precision: "bf16" });
  const tensors = [prefill, denoise, ...(extend ? [extend] : [])].flatMap((graph) => graph.tensors);
  const seeded = tensors.filter(({ name, values }) => values.key !== undefined && name !== TABLE);
  const counts = new Map(seeded.map(({ values, dims }) => [values.key, dims.reduce((all, dim) => all * dim, 1)]));
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Weights of the table that PyTorch has drawn: a thousand tokens where the model does not say. */
function tableOf({ architecture }: ModelFile): number {
  if ("transformer" in architecture) return 1000 * architecture.transformer.width;
  const { vocabulary = 1000, width } = architecture.language;
  return vocabulary * width;
}
