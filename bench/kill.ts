/** Is every answer that a client has read there again after kill -9? See test/program/kill.ts. */
import { Problem } from "../src/error/problem.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { killRounds } from "../test/program/kill.ts";
import { counts, judged, type Proof } from "./proof.ts";

const ROUNDS = { small: 1, full: 200 } as const;

export const kill: Proof = {
  name: "kill",
  question: "After kill -9 at random points under load, is every answered observation replayed byte for byte?",
  async run(size) {
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    // The first answer that is not replayed ends this with an error.
    const { rounds, answered, cutOff } = await killRounds(ROUNDS[size], frames, "full");
    const rows = counts([
      ["kills", rounds],
      ["answered observations, all replayed byte for byte", answered],
      ["observations cut off, then answered once", cutOff],
    ]);
    return { ...judged(rows), pass: answered > 0 };
  },
};
