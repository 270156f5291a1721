/** `tendon bundle import DIR`: a bundle of a publisher's checkpoint. */
import { resolve } from "node:path";
import { importBundle } from "../../bundle/import/import.ts";
import { HALVES, PRECISIONS } from "../../bundle/weights.ts";
import { sampleFrames } from "../../measure/sample/drawing.ts";
import { Problem } from "../../std/problem.ts";
import type { Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { formOf } from "./form.ts";
import { outcome } from "./outcome.ts";
import { computeRows } from "./rows.ts";
import { shown } from "./shown.ts";

export const bundleImport: Command = {
  name: "bundle import",
  summary: "Make a bundle of a publisher's checkpoint: pi0.5 of LeRobot or openpi, ACT and SmolVLA of LeRobot.",
  details: [
    "DIR is the folder that was downloaded. The robot file says in TOML what no checkpoint says: units, ranges, cameras, rate.",
    "Where it leaves something out, the lines to fill in are printed, and nothing is written.",
  ],
  positionals: "DIR",
  flags: {
    robot: {
      value: "FILE",
      required: true,
      about: "The robot file; one that is not there is printed, to be filled in.",
    },
    id: { value: "ID", required: true, about: "The id that the model is served under." },
    out: { value: "DIR", required: true, about: "Where it is put; a bundle that stands there is replaced." },
    golden: { value: "DIR", about: "Values that the publisher's code computed, for tendon bundle verify." },
    tokenizer: { value: "FILE", about: "tokenizer.json or a SentencePiece model, where DIR has none." },
    weights: { value: PRECISIONS.join("|"), about: "As in tendon bundle build." },
    compute: { value: HALVES.join("|"), about: "As in tendon bundle build: for a GPU." },
    json: { about: "Print id, export id, weights, folder and bytes as one JSON object." },
  },
  async run(given) {
    const form = formOf(bundleImport, given);
    if (form instanceof Problem) return form;
    const { weights: precision, ...compute } = form;
    const out = resolve(given.required("out"));
    const [golden, tokenizer] = [given.text("golden"), given.text("tokenizer")];
    const imported = await shown(!given.on("json"), (progress) =>
      importBundle(resolve(given.word(0)), out, {
        ...{ id: given.required("id"), robot: given.required("robot"), precision, ...compute },
        ...(golden !== undefined && { golden }),
        ...(tokenizer !== undefined && { tokenizer }),
        ...{ computeRows, draw: (size) => sampleFrames(0, size), progress },
      }),
    );
    if (imported instanceof Problem) return imported;
    const { words, facts } = outcome("imported", imported, out);
    return answer(given, facts, words);
  },
};
