import { expect, test } from "bun:test";
import { ECHO_WARNING } from "../../src/bundle/describe.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { modelFacts, modelsText } from "../../src/cli/models.ts";

// The facts of a model stand in model.json before its graphs exist; these functions read nothing else.
const manifest = (await Bun.file("models/molmoact2-yam/model.json").json()) as Manifest;

test("every fact of contract section 2 is listed", () => {
  expect(modelFacts({ manifest })).toMatchObject({
    id: "vendorB/molmoact2:yam",
    reference: true,
    stateful: false,
    cameras: ["top", "left", "right"],
    frames: { first: 1, later: 1 },
    state: { kind: "joint" },
    rows: 30,
    dt: 1 / 30,
    action_space: "joint_position",
    action_dim: 14,
  });
});

test("random weights are said so, loudly", () => {
  expect(modelsText([{ manifest }])).toContain("RANDOM (reference)");
  expect(modelsText([{ manifest }])).toContain("never move a real arm");
  expect(modelsText([{ manifest: { ...manifest, reference: false } }])).not.toContain("RANDOM");
  expect(modelsText([])).toContain("tendon bundle build");
});

test("what the weights are kept and computed in is said in the table and for programs", () => {
  for (const [changes, weights, shown] of [
    [{}, "f32", "RANDOM (reference)\n"],
    [{ weights: "int8" }, "int8", "RANDOM (reference), int8\n"],
    [{ compute: "bf16" }, "bf16", "RANDOM (reference), bf16\n"],
  ] as const) {
    const of = { manifest: { ...manifest, ...changes } };
    expect(modelFacts(of)).toMatchObject({ weights });
    expect(modelsText([of])).toContain(shown);
  }
});

test("the device echo is said so as loudly, in the table and for programs", () => {
  const placed = { manifest: { ...manifest, reference: false }, device: "echo" };
  expect(modelsText([placed])).toContain("NONE (echo)");
  expect(modelsText([placed])).toContain(ECHO_WARNING);
  expect(modelFacts(placed)).toMatchObject({ reference: false, bundle: "reference" });
  expect(modelFacts({ ...placed, device: "cpu" })).toMatchObject({ bundle: "trained" });
});

test("the device is told, and of a list which replica is on which", () => {
  const placed = { manifest, device: ["cuda:0", "cpu"] };
  expect(modelsText([placed])).toContain("replica 0 on cuda:0, replica 1 on cpu");
  expect(modelsText([{ manifest, device: "cuda:1" }])).toContain("on cuda:1");
  expect([placed, { manifest }].map((one) => modelFacts(one))).toMatchObject([
    { device: ["cuda:0", "cpu"], bundle: "reference" },
    { device: null },
  ]);
});
