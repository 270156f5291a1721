/** `tendon bundle build MODEL_DIR`: a bundle of the facts of a model. */
import { resolve } from "node:path";
import { buildBundle, HALVES } from "../../bundle/build.ts";
import type { Progress } from "../../bundle/weight-file.ts";
import { PRECISIONS } from "../../bundle/weights.ts";
import { Problem } from "../../std/problem.ts";
import { type Command, type CommandLine, usageProblem } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { progressOnTerminal } from "../runs/progress.ts";
import { outcome } from "./outcome.ts";
import { computeRows } from "./rows.ts";

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
    const form = formOf(given);
    if (form instanceof Problem) return form;
    const out = resolve(given.required("out"));
    const { weights, ...compute } = form;
    const build = (progress?: Progress) =>
      buildBundle(dir, out, weights, { ...compute, computeRows, ...(progress && { progress }) });
    const built = await (given.on("json") ? build() : shown(build));
    if (built instanceof Problem) return built;
    const { words, facts } = outcome("built", built, out);
    return answer(given, facts, words);
  },
};

/** How its weights are kept and what it computes in; exit 2 for forms that do not go together. */
function formOf(given: CommandLine) {
  const [asked, wanted] = [given.text("weights") ?? "f32", given.text("compute")];
  const wrong = (what: string) => usageProblem(bundleBuild, what);
  const weights = PRECISIONS.find((one) => one === asked);
  if (weights === undefined) return wrong(`--weights is '${asked}', expected ${PRECISIONS.join(", ")}`);
  const compute = HALVES.find((one) => one === wanted);
  if (wanted !== undefined && compute === undefined) {
    return wrong(`--compute is '${wanted}', expected ${HALVES.join(" or ")}`);
  }
  if (compute && weights !== "f32") {
    return wrong(`--weights is '${weights}', but those of --compute ${compute} are ${compute}`);
  }
  return { weights, ...(compute && { compute }) };
}

/** Shows on standard error how far a weight file of gigabytes is written. */
async function shown<T>(build: (written: Progress) => Promise<T>): Promise<T> {
  const progress = progressOnTerminal();
  let before = 0;
  try {
    return await build((done, bytes) => {
      if (before === 0) progress.begun({ files: 1, bytes, skipped: [] });
      progress.moved(done - before);
      before = done;
    });
  } finally {
    progress.end();
  }
}
