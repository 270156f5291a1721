/** Do the robot route and the language models keep their promises over random histories? See test/sim. */
import { LlmOutcomes, runLlmHistory } from "../test/sim/llm-sim.ts";
import { fakeGround, nativeGround, Outcomes, runHistory } from "../test/sim/sim.ts";
import { counts, type Figure, judged, type Proof } from "./proof.ts";

const HISTORIES = {
  small: { fake: 5, native: 2, llm: 5 },
  full: { fake: 10_000, native: 1_000, llm: 5_000 },
} as const;

export const sim: Proof = {
  name: "sim",
  question:
    "Do the robot route, on the real store with the fake engine and the native one, and the language models keep their promises over random histories?",
  async run(size) {
    const native = await nativeGround();
    const rows: Figure[] = [];
    for (const ground of [fakeGround(), native]) {
      const count = HISTORIES[size][ground.name === "fake" ? "fake" : "native"];
      const outcomes = new Outcomes(ground);
      // A broken history throws with its number and its whole trace.
      for (let number = 0; number < count; number += 1) outcomes.add(await runHistory(ground, number));
      rows.push(...figures(ground.name, count, outcomes));
    }
    await native.engine.close();
    const outcomes = new LlmOutcomes();
    const count = HISTORIES[size].llm;
    for (let number = 0; number < count; number += 1) outcomes.add(await runLlmHistory(number));
    rows.push(...figures("llm", count, outcomes));
    return judged(rows);
  },
};

function figures(
  name: string,
  count: number,
  { counts: met, missing }: Pick<Outcomes, "counts" | "missing">,
): Figure[] {
  return [
    ...counts([["histories that kept every promise", count], ...met], `${name}: `),
    { measure: `${name}: outcomes never met`, value: missing.length, unit: "1", limit: 0 },
  ];
}
