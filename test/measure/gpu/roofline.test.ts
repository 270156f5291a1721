import { expect, test } from "bun:test";
import { cardOf } from "../../../src/measure/gpu/cards.ts";
import { computedBy, roofOf } from "../../../src/measure/gpu/roofline.ts";
import { present } from "../../../src/std/assert.ts";

const h200 = present(cardOf("NVIDIA H200"), "the card");
const work = { flops: { bf16: 2e12 }, weightBytes: 6e9, portBytes: 1e8, unknown: [] };
const asItIs = computedBy("cuda:0", "f32");

test("a card is found by what the driver calls it, and one that is not known has no figures", () => {
  for (const [name, found] of [
    ["NVIDIA H200", "H200"],
    ["NVIDIA H200 NVL", "H200 NVL"],
    ["NVIDIA GH200 480GB", "H200"],
    ["NVIDIA H100 80GB HBM3", "H100 SXM"],
    ["NVIDIA H100 PCIe", "H100 PCIe"],
    ["NVIDIA A100-SXM4-80GB", "A100 80GB SXM"],
    ["NVIDIA A100-SXM4-40GB", "A100 40GB"],
    ["NVIDIA A100 80GB PCIe", "A100 80GB PCIe"],
    ["NVIDIA L40S", "L40S"],
    ["NVIDIA L4", "L4"],
    ["NVIDIA GeForce RTX 5090", "RTX 5090"],
    ["NVIDIA GeForce RTX 4090", "RTX 4090"],
  ] as const)
    expect([name, cardOf(name)?.name]).toEqual([name, found]);
  for (const name of ["NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU", "Tesla T4", "llvmpipe"])
    expect([name, cardOf(name)]).toEqual([name, undefined]);
});

test("the least time is that of the memory or of the products, whichever takes longer, for as many runs as there are", () => {
  const one = roofOf(work, 1, h200, asItIs);
  expect(one).toMatchObject({ flops: 2e12, bytes: 6.1e9, bound: "products" });
  expect(one.leastMs).toBeCloseTo((2e12 / 989.5e12) * 1000, 9);
  const step = roofOf({ ...work, flops: { bf16: 2e10 } }, 10, h200, asItIs);
  expect(step).toMatchObject({ flops: 2e11, bytes: 6.1e10, bound: "memory" });
  expect(step.leastMs).toBeCloseTo((6.1e10 / 4800e9) * 1000, 9);
});

test("products of several types take the time of each", () => {
  const both = roofOf({ ...work, flops: { bf16: 2e12, f32: 1e12 } }, 1, h200, asItIs);
  expect(both.leastMs).toBeCloseTo((2e12 / 989.5e12 + 1e12 / 67e12) * 1000, 9);
});

test("f32 is computed as the provider was told: by the cores, or by TensorRT in a smaller type", () => {
  expect(asItIs("f32")).toBe("f32");
  expect(computedBy("tensorrt:0", "bf16")("f32")).toBe("bf16");
  expect(computedBy("tensorrt:0", "f16")("bf16")).toBe("bf16");
  expect(asItIs("other")).toBeUndefined();
});

test("without a card, or with an operator whose work is not known, there is no least time, but what was counted", () => {
  expect(roofOf(work, 2, undefined, asItIs)).toEqual({
    flops: 4e12,
    bytes: 1.22e10,
    bound: undefined,
    leastMs: undefined,
  });
  expect(roofOf({ ...work, unknown: ["Mystery"] }, 1, h200, asItIs).leastMs).toBeUndefined();
  expect(roofOf({ ...work, flops: { other: 1 } }, 1, h200, asItIs).leastMs).toBeUndefined();
});
