/** Sizes of a world-action model's graphs, and the ports that they share: the text, the block of one observation, the memory. */
import { present } from "../../std/assert.ts";
import type { Facts, WorldArchitecture } from "../architecture.ts";
import type { GraphBuilder, Port } from "../graph.ts";
import type { KeyValue } from "../language.ts";
import type { Build } from "../weights.ts";

export type Plan = ReturnType<typeof layOut>;

export function layOut(
  facts: Facts,
  { transformer: size }: WorldArchitecture,
  vocabulary: number,
  { compute: dtype }: Build,
) {
  const memory = present(facts.memory, "the memory of a world-action model");
  /** 2 with guidance, else 1. */
  const branches = facts.guidance === null ? 1 : 2;
  const text = facts.prompt.tokens_max;
  /** Tokens of the longest block. */
  const block = Math.max(memory.first, memory.later) * memory.tokens;
  const port = (name: string): Port => ({ name, dtype, shape: [branches, size.heads, block, size.head_dim] });
  const layers = Array.from({ length: size.layers }, (_, layer) => layer);
  const told = (name: string): Port => ({ name, dtype, shape: [branches, size.heads, text, size.head_dim] });
  const textMask: Port = { name: "text_mask", dtype: "bool", shape: [branches, text] };
  return {
    facts,
    memory,
    size,
    vocabulary,
    branches,
    /** Camera frames in one latent frame; a first latent frame repeats its only camera frame this often. */
    covered: facts.frames.later / memory.later,
    block,
    /** Tokens of the window. */
    window: memory.window * memory.tokens,
    blocks: layers.map((layer): KeyValue<Port> => ({ k: port(`block_k_${layer}`), v: port(`block_v_${layer}`) })),
    /** Keys and values of the text, which a flow's steps share. */
    texts: layers.map((layer): KeyValue<Port> => ({ k: told(`text_k_${layer}`), v: told(`text_v_${layer}`) })),
    textMask,
  };
}

/** The number of valid tokens in the memory or in the block, i64 [1]. */
export function lengthInput(graph: GraphBuilder, of: "memory" | "block"): string {
  const role = `${of}_length` as const;
  return graph.input({ name: role, dtype: "i64", shape: [1] }, role);
}

/** All that was committed of one layer's blocks. */
export function memoryInput(graph: GraphBuilder, { window }: Plan, { k, v }: KeyValue<Port>): KeyValue {
  const input = ({ name, dtype, shape }: Port) =>
    graph.input({ name: name.replace("block", "memory"), dtype, shape: shape.with(-2, window) }, "memory", {
      from: name,
    });
  return { k: input(k), v: input(v) };
}
