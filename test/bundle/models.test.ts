/** The models folder carries the facts of contract section 2, nothing less and nothing else. */
import { describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ModelFile } from "../../src/bundle/architecture.ts";
import { readJson } from "../../src/bundle/schema.ts";
import { Problem } from "../../src/error.ts";
import { MODEL_DIR } from "./built.ts";

const JOINT = { state: "joint", cameras: ["top", "left", "right"], space: "joint_position", dim: 14 } as const;

/** The table "Model facts" of the contract, for the models that ship so far. */
const FACTS = {
  "vendorB/molmoact2:yam": { ...JOINT, frames: { first: 1, later: 1 }, rows: 30, hz: 30, stateful: false },
} as const;

const models = join(MODEL_DIR, "..");
const names = await readdir(models);

describe("models", () => {
  test("each has facts of the contract, and each of these has its folder", async () => {
    const ids: string[] = [];
    for (const name of names) {
      const model = await readJson(join(models, name, "model.json"), ModelFile, "correct it");
      if (model instanceof Problem) throw new Error(model.message);
      ids.push(model.id);
      const { state, cameras, frames, action, stateful } = model;
      const { rows, hz, space, columns } = action;
      const told = { state: state.kind, cameras, frames, rows, hz, space, dim: columns.length, stateful };
      expect(told).toEqual(FACTS[model.id as keyof typeof FACTS] as unknown as typeof told);
    }
    expect(ids.sort()).toEqual(Object.keys(FACTS).sort());
  });

  test("a YAM row is left joints 1-6, left gripper, right joints 1-6, right gripper; the state is in the same order", async () => {
    const model = await readJson(join(MODEL_DIR, "model.json"), ModelFile, "correct it");
    if (model instanceof Problem) throw new Error(model.message);
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
