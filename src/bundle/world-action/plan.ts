/** Sizes of a world-action model's graphs, and the ports that they share: the text, the block of one observation, the memory. */
import { present } from "../../std/assert.ts";
import type { Facts, WorldArchitecture } from "../architecture.ts";
import { openPort } from "../family.ts";
import type { Port } from "../graph.ts";

type Size = WorldArchitecture["transformer"];

export interface Plan {
  readonly about: string;
  readonly facts: Facts;
  readonly memory: NonNullable<Facts["memory"]>;
  readonly size: Size;
  readonly vocabulary: number;
  /** 2 with guidance, else 1. */
  readonly branches: number;
  /** Camera frames in one latent frame; a first latent frame repeats its only camera frame this often. */
  readonly covered: number;
  /** Tokens of the longest block, and of the window. */
  readonly block: number;
  readonly window: number;
  readonly blocks: readonly KeyValue<Port>[];
  readonly context: Port;
  readonly contextMask: Port;
  readonly memoryLength: Port;
}

export interface KeyValue<T> {
  readonly k: T;
  readonly v: T;
}

export function layOut(facts: Facts, { transformer: size }: WorldArchitecture, vocabulary: number): Plan {
  const memory = present(facts.memory, "the memory of a world-action model");
  const branches = facts.guidance === null ? 1 : 2;
  const block = Math.max(memory.first, memory.later) * memory.tokens;
  const port = (name: string): Port => ({ name, dtype: "f32", shape: [branches, size.heads, block, size.head_dim] });
  const text = facts.prompt.tokens_max;
  return {
    about: `${facts.id}: ${facts.reference ? "REFERENCE BUNDLE, random weights, never for a real arm" : facts.source}`,
    facts,
    memory,
    size,
    vocabulary,
    branches,
    covered: facts.frames.later / memory.later,
    block,
    window: memory.window * memory.tokens,
    blocks: Array.from({ length: size.layers }, (_, layer) => ({
      k: port(`block_k_${layer}`),
      v: port(`block_v_${layer}`),
    })),
    context: { name: "context", dtype: "f32", shape: [branches, text, size.width] },
    contextMask: { name: "context_mask", dtype: "bool", shape: [branches, text] },
    memoryLength: { name: "memory_length", dtype: "i64", shape: [1] },
  };
}

/** The port of the committed memory that belongs to a port of the block. */
export function memoryPort(plan: Plan, { name, shape }: Port): Port {
  const [branches = 1, heads = 1, , width = 1] = shape;
  return { name: name.replace("block", "memory"), dtype: "f32", shape: [branches, heads, plan.window, width] };
}

export function blockPorts(plan: Plan): Port[] {
  return plan.blocks.flatMap(({ k, v }) => [k, v]);
}

export function memoryInputs(plan: Plan) {
  return [
    { ...openPort(plan.memoryLength), role: "memory_length" as const },
    ...blockPorts(plan).map((port) => ({
      ...openPort(memoryPort(plan, port)),
      role: "memory" as const,
      from: port.name,
    })),
  ];
}
