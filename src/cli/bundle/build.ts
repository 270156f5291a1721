/** `tendon bundle build MODEL_DIR`: a bundle of the facts of a model. */
import { resolve } from "node:path";
import { buildBundle } from "../../bundle/build.ts";
import { HALVES, PRECISIONS } from "../../bundle/weights.ts";
import { Problem } from "../../std/problem.ts";
import type { Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { formOf } from "./form.ts";
import { outcome } from "./outcome.ts";
import { computeRows } from "./rows.ts";
import { shown } from "./shown.ts";

export const bundleBuild: Command = {
  name: "bundle build",
  summary: "Build a bundle from the facts of a model, such as those in models/.",
  positionals: "MODEL_DIR",
  flags: {
    out: { value: "DIR", required: true, about: "Where it is put; a bundle that stands there is replaced." },
    weights: {
      value: PRECISIONS.join("|"),
      about:
        "How the large matrices are kept (default f32). int8 is faster on a CPU with VNNI. bf16 is half as large. Each has its own parity tolerance.",
    },
    compute: {
      value: HALVES.join("|"),
      about:
        "For a GPU: weights, activations and caches are of this type, with another parity tolerance, and frames are normalised in the graph. The CPU computes f16 too, no faster, and no bf16.",
    },
    json: { about: "Print id, export id, weights, folder and bytes as one JSON object." },
  },
  async run(given) {
    const dir = resolve(given.word(0));
    const form = formOf(bundleBuild, given);
    if (form instanceof Problem) return form;
    const out = resolve(given.required("out"));
    const { weights, ...compute } = form;
    const built = await shown(!given.on("json"), (progress) =>
      buildBundle(dir, out, weights, { ...compute, computeRows, progress }),
    );
    if (built instanceof Problem) return built;
    const { words, facts } = outcome("built", built, out);
    return answer(given, facts, words);
  },
};
