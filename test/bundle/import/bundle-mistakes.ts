/** Mistakes in the facts or the graphs of an imported bundle, and the stage that verify names for each. */
import { present } from "../../../src/std/assert.ts";
import { facts, otherTokenizer, type Spoil, swappedCameras } from "../spoiled-bundle.ts";
import {
  causalPrefix,
  epsilon,
  filled,
  fromZero,
  gelu,
  graphOf,
  halves,
  named,
  numbered,
  silu,
  weight,
} from "../spoiled-graph.ts";
import { ACT, ALL, FLOWS, LEROBOT, type Mistake, OPENPI, PI05, SMOLVLA } from "./mistake.ts";

const noState = graphOf("prefill", (graph) => {
  graph.node.unshift({ name: "none", opType: "Mul", input: ["state", "scalar 0"], output: ["none"], attribute: [] });
  named(graph, "language.state_in.matmul").input[0] = "none";
});

/** Sines and cosines of times in equal steps from 1. */
function equalSteps(table: Float32Array, [steps = 0, width = 0]: readonly number[]): void {
  const half = width / 2;
  for (let at = 0; at < table.length; at += 1) {
    const [step, column] = [Math.floor(at / width), at % width];
    const period = 4e-3 * 1000 ** ((column % half) / (half - 1));
    const angle = (2 * Math.PI * Math.fround(1 - step / steps)) / period;
    table[at] = column < half ? Math.sin(angle) : Math.cos(angle);
  }
}

const template = (change: { text?: string; bins?: number; clean?: string[] }) =>
  facts(({ prompt }) => Object.assign(present(prompt.parts.at(-1), "the template"), change));
const columns = (part: "state" | "action", change: object) =>
  facts((manifest) => {
    for (const column of manifest[part].columns) Object.assign(column, change);
  });

export const IN_BUNDLE: readonly Mistake<Spoil>[] = [
  ["another filter", [LEROBOT, SMOLVLA], facts(({ image }) => (image.filter = "pillow-bilinear")), "pictures"],
  ["another filter", [OPENPI], facts(({ image }) => (image.filter = "torch-bilinear")), "pictures"],
  [
    "pictures that are rounded to 8 bits",
    [LEROBOT, SMOLVLA],
    facts(({ image }) => (image.filter = "torch-bilinear-u8")),
    "pictures",
  ],
  [
    "another place of the picture",
    FLOWS,
    facts(({ image }) => (image.place = image.place === "bottom_right" ? "centre" : "bottom_right")),
    "pictures",
  ],
  ["a picture that is stretched", PI05, facts(({ image }) => (image.resize = "stretch")), "pictures"],
  ["other means of the pixels", ALL, facts(({ image }) => (image.mean = [0.4, 0.5, 0.5])), "pictures"],
  ["cameras that are swapped", ALL, swappedCameras, "pictures"],
  [
    "another epsilon of the state",
    [LEROBOT, OPENPI, ACT, SMOLVLA],
    columns("state", { epsilon: 1e-5 }),
    "normalised state",
  ],
  [
    "the epsilon of the deviation on the way back",
    [ACT, SMOLVLA],
    columns("action", { epsilon_rule: "added", epsilon: 1e-3 }),
    "rows",
  ],
  ["other bins", PI05, template({ bins: 255 }), "tokens"],
  [
    "another text around the instruction",
    PI05,
    template({ text: "Task: {instruction} State: {state};\nAction: " }),
    "tokens",
  ],
  [
    "a state that is padded before it is digitised",
    PI05,
    template({ text: "Task: {instruction}, State: {state} 128;\nAction: " }),
    "tokens",
  ],
  [
    "a prompt that leaves the state out",
    PI05,
    facts(({ prompt }) => prompt.parts.splice(1, 1, { kind: "instruction" })),
    "tokens",
  ],
  ["runs of white space that become one space", PI05, template({ clean: ["underscores", "words"] }), "tokens"],
  ["no line feed at the end", [SMOLVLA], template({ clean: [] }), "tokens"],
  ["another tokenizer", FLOWS, otherTokenizer, "tokens"],
  ["a state that is left out", [SMOLVLA], noState, "prefix cache"],
  [
    "a state that the pictures and the text see",
    [SMOLVLA],
    graphOf("prefill", (graph) => (named(graph, "pad~2").input[2] = "scalar 0")),
    "prefix cache",
  ],
  [
    "image tokens without the factor of the width",
    [SMOLVLA],
    graphOf("prefill", (graph) => {
      named(graph, "mul").input[1] = "scalar 1";
    }),
    "prefix cache",
  ],
  ["a causal prefix", PI05, causalPrefix(8, 1), "prefix cache"],
  ["a causal prefix", [SMOLVLA], causalPrefix(15, 5), "prefix cache"],
  [
    "a table of positions that is too short",
    FLOWS,
    weight("prefill", "rope.positions", filled(31, 32)),
    "prefix cache",
  ],
  [
    "another base of the positions",
    FLOWS,
    weight("prefill", "rope.frequencies", (old) => old.set(old.map((_, at) => 100_000 ** (-at / old.length)))),
    "prefix cache",
  ],
  ["another epsilon of the tower's norms", FLOWS, epsilon("prefill", "vision", 1e-5), "image tokens"],
  ["another epsilon of the language model's norms", PI05, epsilon("prefill", "language", 1e-5), "prefix cache"],
  ["another epsilon of the language model's norms", [SMOLVLA], epsilon("prefill", "language", 1e-6), "prefix cache"],
  ["another epsilon of the expert's norms", PI05, epsilon("denoise", "expert", 1e-5), "velocity"],
  ["another epsilon of the expert's norms", [SMOLVLA], epsilon("denoise", "expert", 1e-6), "velocity"],
  ["another epsilon of the norms", [ACT], epsilon("prefill", "encoder", 1e-6), "normalised rows"],
  ["SiLU for GELU in the expert", PI05, silu, "velocity"],
  ["GELU for SiLU in the expert", [SMOLVLA], gelu, "velocity"],
  ["rows that see all rows", [SMOLVLA], weight("denoise", "expert.blocks", filled(5)), "velocity"],
  ["positions of rows from 0", FLOWS, fromZero, "velocity"],
  ["positions of rows one too high", FLOWS, numbered(1), "velocity"],
  [
    "a sinusoid in half precision",
    FLOWS,
    weight("denoise", "time.table", (old) => old.set(new Float16Array(old))),
    "velocity",
  ],
  [
    "times in the other direction",
    FLOWS,
    facts(({ flow }) => Object.assign(flow, { t_start: 0, t_end: 1, times: undefined })),
    "velocity",
  ],
  [
    "times with another shift",
    FLOWS,
    facts(({ flow }) => Object.assign(flow, { shift: 3, times: undefined })),
    "velocity",
  ],
  ["times that are not counted as openpi does", [OPENPI], weight("denoise", "time.table", equalSteps), "velocity"],
  ["rows that are absolute", PI05, columns("action", { relative_to: null }), "rows"],
  [
    "rows and columns of the pixels' places swapped",
    [ACT],
    weight("prefill", "places.pixels", (old, [rows = 0, columns = 0]) => halves(0, columns)(old, [rows, columns])),
    "normalised rows",
  ],
  ["a latent token that is left out", [ACT], weight("prefill", "latent.bias", filled(0)), "normalised rows"],
];
