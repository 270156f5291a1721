/** The models folder carries the facts of contract section 2, nothing less and nothing else. */
import { describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ModelFile } from "../../src/bundle/architecture.ts";
import { readJson } from "../../src/bundle/schema.ts";
import { ok } from "../engine/opened.ts";
import { MODEL_DIR } from "./built.ts";

const JOINT = { state: "joint", cameras: ["top", "left", "right"], space: "joint_position", dim: 14 } as const;

const ONE = { frames: { first: 1, later: 1 }, hz: 30, stateful: false } as const;

/** The table "Model facts" of the contract. */
const FACTS = {
  "vendorA/dreamzero-astra:yam": { ...JOINT, ...ONE, frames: { first: 1, later: 4 }, rows: 24, stateful: true },
  "vendorB/molmoact2:yam": { ...JOINT, ...ONE, rows: 30 },
  "vendorC/rho:yam": {
    ...ONE,
    state: "cartesian",
    cameras: ["scene", "left_wrist", "right_wrist"],
    rows: 25,
    space: "cartesian_position",
    dim: 20,
  },
  "vendorD/isaac-0.5:yam": { ...JOINT, ...ONE, rows: 25 },
  "vendorE/pi0.5:yam": { ...JOINT, ...ONE, rows: 25 },
  "vendorF/picasso:yam": { ...JOINT, ...ONE, rows: 25, stateful: true },
} as const;

const models = join(MODEL_DIR, "..");
const names = await readdir(models);

async function modelOf(name: string): Promise<ModelFile> {
  return ok(await readJson(join(models, name, "model.json"), ModelFile, "correct it"));
}

describe("models", () => {
  test("each has facts of the contract, and each of these has its folder", async () => {
    const ids: string[] = [];
    for (const name of names) {
      const model = await modelOf(name);
      ids.push(model.id);
      const { state, cameras, frames, action, stateful } = model;
      const { rows, hz, space, columns } = action;
      const told = { state: state.kind, cameras, frames, rows, hz, space, dim: columns.length, stateful };
      expect(told).toEqual(FACTS[model.id as keyof typeof FACTS] as unknown as typeof told);
    }
    expect(ids.sort()).toEqual(Object.keys(FACTS).sort());
  });

  test("what the families' notes say of each model is in its facts", async () => {
    const flow = async (name: string) => {
      const model = await modelOf(name);
      const { t_start, t_end, steps } = model.flow;
      return {
        ...model,
        times: [t_start, t_end, steps],
        relative: model.action.columns.map((c) => c.relative_to !== null),
      };
    };
    const pi = await flow("pi0.5-yam");
    expect([
      pi.times,
      pi.prompt.parts.at(-1)?.kind,
      pi.action.columns.every(({ norm }) => norm === "quantile"),
    ]).toEqual([[1, 0, 10], "template", true]);
    // Joints relative to the current state, grippers absolute.
    const arm = [...Array(6).fill(true), false];
    expect(pi.relative).toEqual([...arm, ...arm]);
    const isaac = await flow("isaac-0.5-yam");
    expect([isaac.times, isaac.state.width > 14, isaac.action.width > 14]).toEqual([[0, 1, 4], true, true]);
    expect((await flow("rho-yam")).action.rotation6d).toEqual([3, 13]);
    const dreamzero = await flow("dreamzero-astra-yam");
    expect([dreamzero.guidance, dreamzero.relative.every(Boolean), dreamzero.memory]).toEqual([
      { scale: 5, apply: ["video"] },
      true,
      { window: 7, tokens: 48, first: 1, later: 2 },
    ]);
    expect((await flow("picasso-yam")).guidance).not.toBeNull();
  });

  test("a YAM row is left joints 1-6, left gripper, right joints 1-6, right gripper; the state is in the same order", async () => {
    const model = await modelOf("molmoact2-yam");
    const side = (name: string) => [
      ...Array.from({ length: 6 }, (_, joint) => `${name}_joint_${joint + 1}`),
      `${name}_gripper`,
    ];
    const order = [...side("left"), ...side("right")];
    expect(model.action.columns.map(({ name }) => name)).toEqual(order);
    expect(model.state.columns.map(({ name }) => name)).toEqual(order);
    const sources = model.state.columns.map(({ from, index }) => `${from}[${index}]`);
    expect(sources.slice(5, 9)).toEqual([
      "joint_position[5]",
      "gripper_position[0]",
      "joint_position[6]",
      "joint_position[7]",
    ]);
    expect(sources[13]).toBe("gripper_position[1]");
  });
});
