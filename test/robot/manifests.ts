/** Manifests for tests: the facts of the contract's table, without files. */
import type { Manifest } from "../../src/bundle/manifest.ts";

type StateColumn = Manifest["state"]["columns"][number];
type ActionColumn = Manifest["action"]["columns"][number];

const ARMS = ["left", "right"] as const;

function jointStates(): StateColumn[] {
  return ARMS.flatMap((arm, side) => [
    ...Array.from({ length: 6 }, (_, joint): StateColumn => {
      const index = side * 6 + joint;
      return { name: `${arm}_joint_${joint + 1}`, unit: "rad", from: "joint_position", index, norm: "none" };
    }),
    { name: `${arm}_gripper`, unit: "1", from: "gripper_position", index: side, norm: "none" } as const,
  ]);
}

function cartesianStates(): StateColumn[] {
  return ARMS.flatMap((arm, side) => [
    ...Array.from({ length: 9 }, (_, i): StateColumn => {
      return { name: `${arm}_${i}`, unit: "m", from: "cartesian_position", index: side * 9 + i, norm: "none" };
    }),
    { name: `${arm}_gripper`, unit: "1", from: "gripper_position", index: side, norm: "none" } as const,
  ]);
}

function actions(states: readonly StateColumn[]): ActionColumn[] {
  return states.map(({ name, unit }) => ({ name, unit, norm: "none", relative_to: null, min: -100, max: 100 }));
}

const graph = { file: "x.onnx", inputs: [], outputs: [] };

export function manifest(changes: Partial<Manifest> = {}): Manifest {
  const columns = jointStates();
  return {
    format: 1,
    id: "vendorB/molmoact2:yam",
    title: "Test model",
    licence: "none",
    source: "a test",
    family: "flow-vla",
    reference: false,
    stateful: false,
    cameras: ["top", "left", "right"],
    frames: { first: 1, later: 1 },
    image: {
      width: 64,
      height: 64,
      resize: "pad",
      filter: "pillow-bilinear",
      mean: [0, 0, 0],
      std: [1, 1, 1],
      tokens: 16,
    },
    state: { kind: "joint", columns, width: columns.length },
    prompt: { tokens_max: 8, pad_id: 0, parts: [{ kind: "instruction" }] },
    action: {
      rows: 30,
      hz: 30,
      space: "joint_position",
      width: 14,
      columns: actions(columns),
      rotation6d: [],
      out_of_range: "clamp",
    },
    flow: { t_start: 1, t_end: 0, steps: 4, shift: 1 },
    guidance: null,
    memory: null,
    batch: 1,
    export_id: "0".repeat(64),
    graphs: { prefill: graph, denoise: graph },
    tokenizer: "tokenizer.json",
    norm: "norm.json",
    parity: { file: "parity/chunk.json", tolerance: 1e-4 },
    files: [],
    ...changes,
  };
}

/** A model with episode memory: four frames per camera after the first request. */
export function statefulManifest(): Manifest {
  const base = manifest();
  return {
    ...base,
    id: "vendorA/dreamzero-astra:yam",
    stateful: true,
    reference: true,
    frames: { first: 1, later: 4 },
    memory: { window: 7, tokens: 48, first: 1, later: 2 },
    action: { ...base.action, rows: 24 },
  };
}

export function cartesianManifest(): Manifest {
  const columns = cartesianStates();
  const base = manifest();
  return {
    ...base,
    id: "vendorC/rho:yam",
    cameras: ["scene", "left_wrist", "right_wrist"],
    state: { kind: "cartesian", columns, width: columns.length },
    action: { ...base.action, rows: 25, space: "cartesian_position", width: 20, columns: actions(columns) },
  };
}

/** A robot that is not a YAM: one arm of seven values, two cameras, 50 rows, an id of its operator's own. */
export function vectorManifest(): Manifest {
  const columns = Array.from({ length: 7 }, (_, index): StateColumn => {
    const name = index < 6 ? `joint_${index + 1}` : "gripper";
    return { name, unit: index < 6 ? "deg" : "1", from: "state", index, norm: "none" };
  });
  const base = manifest();
  const limited = actions(columns).map((column) => ({ ...column, max_jump: 20, max_step: 5 }));
  return {
    ...base,
    id: "lab/so101:pick",
    cameras: ["front view", "wrist"],
    state: { kind: "vector", columns, width: columns.length },
    action: { ...base.action, rows: 50, hz: 20, space: "vector", width: 7, columns: limited },
  };
}
