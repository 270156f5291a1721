/**
 * Tables that graphs begin with, against the publishers' code bit for bit: PyTorch 2.11.0, transformers 5.5.4 and LeRobot 0.6.1 on a CPU.
 * `inv_freq = 1 / (10000 ** (arange(0, d, 2).float() / d))`; `create_sinusoidal_pos_embedding(t, 64, 4e-3, 4.0)`, rounded to float32.
 */
import { expect, test } from "bun:test";
import { timeTable } from "../../src/bundle/flow-condition.ts";
import { flowTimes } from "../../src/bundle/flow-times.ts";
import { GraphBuilder } from "../../src/bundle/graph.ts";
import { rotation } from "../../src/bundle/layers.ts";
import { RandomWeights } from "../../src/bundle/random-weights.ts";
import { allOf } from "../../src/bundle/values.ts";
import { DEFAULT_BUILD } from "../../src/bundle/weights.ts";
import { present } from "../../src/std/assert.ts";
import { sha256 } from "../../src/std/file-digest.ts";

/** The digest of the bytes of an initialiser of a graph. */
function digestOf(name: string, make: (graph: GraphBuilder) => void): string {
  const graph = new GraphBuilder(
    "test",
    { id: "a/b", reference: true, source: "" },
    new RandomWeights(1, DEFAULT_BUILD),
  );
  make(graph);
  const tensor = graph.tensors.find((one) => one.name === name);
  return sha256(allOf(present(tensor, name).values));
}

test("frequencies of rotary positions", () => {
  for (const [width, digest] of [
    [64, "734f9e6b629f7baccc4de81b7e8d2982035ee1b81f73f158e7d33a4dcf13fa0e"],
    [128, "4b659c349432de9f79dd9cb4ee360c56e20be3809e01d4bbccbf2ebeae925c3d"],
  ] as const) {
    expect(digestOf("rope.frequencies", (graph) => rotation(graph, "positions", width))).toBe(digest);
  }
});

test("sines and cosines of the times", () => {
  // At t = 1 the sine of 250 turns is nothing but the last bit of an angle.
  const times = flowTimes({ t_start: 1, t_end: 0, steps: 10, shift: 1 }).slice(1, -1);
  expect(digestOf("time.table", (graph) => timeTable(graph, times, 64, 4e-3))).toBe(
    "5719f7f88f6224a948315a8975843cac1c7d7baab76a1b181cc8e4f2a086fbda",
  );
});
