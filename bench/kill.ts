/** Is every answer that a client has read there again after kill -9? See test/program/kill.ts. */

import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { Problem } from "../src/std/problem.ts";
import { table } from "../src/std/text-table.ts";
import { killRounds } from "../test/program/kill.ts";
import { type Figure, figureLines, type Proof } from "./proof.ts";

const ROUNDS = { small: 1, full: 200 } as const;

export const kill: Proof = {
  name: "kill",
  question: "After kill -9 at random points under load, is every answered observation replayed byte for byte?",
  async run(size) {
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    // The first answer that is not replayed ends this with an error.
    const { rounds, answered, cutOff } = await killRounds(ROUNDS[size], frames, "full");
    const rows: Figure[] = [
      { measure: "kills", value: rounds, unit: "1" },
      { measure: "answered observations, all replayed byte for byte", value: answered, unit: "1" },
      { measure: "observations cut off, then answered once", value: cutOff, unit: "1" },
    ];
    return { text: table(figureLines(rows), ["left", "right"]), rows, pass: answered > 0 };
  },
};
