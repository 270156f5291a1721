/** Does the robot route keep its promises over random histories? See test/sim. */
import { fakeGround, nativeGround, Outcomes, runHistory } from "../test/sim/sim.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const HISTORIES = { small: { fake: 5, native: 2 }, full: { fake: 10_000, native: 1_000 } } as const;

export const sim: Proof = {
  name: "sim",
  question: "Does the robot route keep its promises over random histories, on the fake engine and on the native one?",
  async run(size) {
    const native = await nativeGround();
    const rows: Figure[] = [];
    for (const ground of [fakeGround(), native]) {
      const count = HISTORIES[size][ground.name === "fake" ? "fake" : "native"];
      const outcomes = new Outcomes();
      // A broken history throws with its number and its whole trace.
      for (let number = 0; number < count; number += 1) outcomes.add(await runHistory(ground, number));
      rows.push({ measure: `${ground.name}: histories that kept every promise`, value: count, unit: "1" });
      for (const [name, value] of outcomes.counts) rows.push({ measure: `${ground.name}: ${name}`, value, unit: "1" });
      rows.push({ measure: `${ground.name}: outcomes never met`, value: outcomes.missing.length, unit: "1", limit: 0 });
    }
    await native.engine.close();
    return judged(rows);
  },
};
