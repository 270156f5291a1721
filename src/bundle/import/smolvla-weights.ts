/**
 * The weights of SmolVLA as LeRobot 0.6.1 saves them (`policies/smolvla`): the sizes that they tell, and the table from a graph's names to theirs.
 * The configuration of the backbone is not in a checkpoint, and how many heads it has is the size of no tensor.
 */
import type { Architecture } from "../architecture.ts";
import type { Part, WeightTable } from "./checkpoint-weights.ts";
import type { Stored } from "./safetensors.ts";

const VLM = "model.vlm_with_expert.vlm.";
const VISION = `${VLM}model.vision_model.`;
const TEXT = `${VLM}model.text_model.`;
const EXPERT = "model.vlm_with_expert.lm_expert.";
const PATCHES = `${VISION}embeddings.patch_embedding`;
const POSITIONS = `${VISION}embeddings.position_embedding.weight`;
const CONNECTOR = `${VLM}model.connector.modality_projection.proj`;
const EMBEDDING = `${TEXT}embed_tokens.weight`;

/** Heads of a backbone. */
export interface BackboneHeads {
  /** Heads of queries, in the language model and the expert. */
  readonly heads: number;
  /** Heads of the vision tower. */
  readonly vision_heads: number;
}

/** What an expert reads in which of its layers, in the words of config.json. */
interface Attention {
  readonly attention_mode: string;
  readonly self_attn_every_n_layers: number;
}

type Blocks = NonNullable<Architecture["expert"]["blocks"]>;

export interface Sizes {
  readonly vision: Omit<Architecture["vision"], "heads">;
  readonly language: Omit<Architecture["language"], "heads" | "kv_heads" | "head_dim">;
  readonly expert: Omit<Architecture["expert"], "blocks"> & { readonly blocks: Blocks };
  /** Columns of all heads of queries, and of keys. */
  readonly queries: number;
  readonly keys: number;
  readonly positions: number;
  readonly stateWidth: number;
  readonly actionWidth: number;
}

/** Sizes by the shapes of tensors; the published ones where a tensor is missing, so that all that is missing can be named. */
export function sizesOf(tensors: ReadonlyMap<string, Stored>, attention: Attention): Sizes {
  const axis = (name: string, at: number, published: number) => tensors.get(name)?.shape[at] ?? published;
  const layersOf = (prefix: string, published: number) => {
    const numbers = [...tensors.keys()].flatMap((name) => {
      const rest = name.startsWith(prefix) ? /^(\d{1,4})\./.exec(name.slice(prefix.length)) : null;
      return rest ? [Number(rest[1]) + 1] : [];
    });
    return numbers.length === 0 ? published : Math.max(...numbers);
  };
  const ofText = (part: string, published: number) => axis(`${TEXT}layers.0.${part}.weight`, 0, published);
  const tower = axis(`${PATCHES}.weight`, 0, 768);
  const width = axis(EMBEDDING, 1, 960);
  const expert = axis("model.action_in_proj.weight", 0, 720);
  const blocks = blocksOf(attention, layersOf(`${TEXT}layers.`, 16), layersOf(`${EXPERT}layers.`, 16));
  const forms = { activation: "silu", epsilon: 1e-5 } as const;
  return {
    vision: {
      width: tower,
      layers: layersOf(`${VISION}encoder.layers.`, 12),
      mlp: axis(`${VISION}encoder.layers.0.mlp.fc1.weight`, 0, 3072),
      patch: axis(`${PATCHES}.weight`, 2, 16),
      shuffle: Math.round(Math.sqrt(axis(`${CONNECTOR}.weight`, 1, 16 * tower) / tower)),
      scale: Math.sqrt(width),
    },
    language: {
      width,
      // Behind the last layer that a block reads nothing is computed.
      layers: Math.max(...blocks.map(({ layer }) => layer)) + 1,
      mlp: ofText("mlp.gate_proj", 2560),
      vocabulary: axis(EMBEDDING, 0, 49_280),
      scale: Math.sqrt(width),
      // The backbone's own base is ignored (`apply_rope`).
      rope_base: 10_000,
      ...forms,
    },
    expert: {
      width: expert,
      mlp: axis(`${EXPERT}layers.0.mlp.gate_proj.weight`, 0, 2048),
      time_width: expert,
      ...forms,
      time: "joined",
      rows: "causal",
      blocks,
    },
    queries: ofText("self_attn.q_proj", 960),
    keys: ofText("self_attn.k_proj", 320),
    positions: axis(POSITIONS, 0, 1024),
    stateWidth: axis("model.state_proj.weight", 1, 32),
    actionWidth: axis("model.action_in_proj.weight", 1, 32),
  };
}

/** Block i stands at layer i · (layers / blocks) of the backbone, and that layer's number decides what it reads (`get_model_layers`). */
function blocksOf(
  { attention_mode: mode, self_attn_every_n_layers: every }: Attention,
  layers: number,
  count: number,
): Blocks {
  const apart = Math.max(1, Math.floor(layers / count));
  return Array.from({ length: Math.min(layers, count) }, (_, block) => {
    const layer = block * apart;
    const isJoined = !mode.includes("cross") || (every > 0 && layer % every === 0);
    return isJoined ? { layer } : { layer, reads: "prefix" as const };
  });
}

/** The place of each tensor of the graphs in the checkpoint. */
export function smolVlaTable({ vision, language, expert }: Sizes): WeightTable {
  const table = new Map<string, readonly Part[]>();
  const matrix = (name: string, from: string) =>
    table.set(`${name}.weight`, [{ tensor: `${from}.weight`, transpose: true }]);
  const bias = (name: string, from: string) => table.set(`${name}.bias`, [{ tensor: `${from}.bias` }]);
  const scale = (name: string, from: string) => table.set(`${name}.scale`, [{ tensor: `${from}.weight` }]);
  const linear = (name: string, from: string) => {
    matrix(name, from);
    bias(name, from);
  };
  const layerNorm = (name: string, from: string) => {
    scale(name, from);
    bias(name, from);
  };

  table.set("vision.patch.weight", [{ tensor: `${PATCHES}.weight` }]);
  bias("vision.patch", PATCHES);
  table.set("vision.positions", [{ tensor: POSITIONS }]);
  for (let layer = 0; layer < vision.layers; layer += 1) {
    const [name, from] = [`vision.blocks.${layer}`, `${VISION}encoder.layers.${layer}`];
    layerNorm(`${name}.attention.norm`, `${from}.layer_norm1`);
    for (const [own, theirs] of PROJECTIONS) linear(`${name}.attention.${own}`, `${from}.self_attn.${theirs}_proj`);
    linear(`${name}.attention.output`, `${from}.self_attn.out_proj`);
    layerNorm(`${name}.mlp.norm`, `${from}.layer_norm2`);
    linear(`${name}.mlp.up`, `${from}.mlp.fc1`);
    linear(`${name}.mlp.down`, `${from}.mlp.fc2`);
  }
  layerNorm("vision.norm", `${VISION}post_layernorm`);
  matrix("vision.projection", CONNECTOR);

  const llama = (name: string, from: string) => {
    scale(`${name}.norm1`, `${from}.input_layernorm`);
    scale(`${name}.norm2`, `${from}.post_attention_layernorm`);
    matrix(`${name}.output`, `${from}.self_attn.o_proj`);
    for (const part of ["gate", "up", "down"]) matrix(`${name}.mlp.${part}`, `${from}.mlp.${part}_proj`);
  };
  table.set("language.embedding", [{ tensor: EMBEDDING }]);
  linear("language.state_in", "model.state_proj");
  for (let layer = 0; layer < language.layers; layer += 1) {
    const [name, from] = [`language.blocks.${layer}`, `${TEXT}layers.${layer}`];
    llama(name, from);
    for (const [own, theirs] of PROJECTIONS) matrix(`${name}.${own}`, `${from}.self_attn.${theirs}_proj`);
  }
  expert.blocks.forEach(({ reads }, block) => {
    const [name, from] = [`expert.blocks.${block}`, `${EXPERT}layers.${block}`];
    llama(name, from);
    for (const [own, theirs] of PROJECTIONS) {
      const place = reads === "prefix" && own !== "query" ? `${name}.context` : name;
      matrix(`${place}.${own}`, `${from}.self_attn.${theirs}_proj`);
    }
  });
  scale("expert.final", `${EXPERT}norm`);
  linear("expert.action_in", "model.action_in_proj");
  linear("expert.action_time_in", "model.action_time_mlp_in");
  linear("expert.action_time_out", "model.action_time_mlp_out");
  linear("expert.action_out", "model.action_out_proj");
  return table;
}

const PROJECTIONS = [
  ["query", "q"],
  ["key", "k"],
  ["value", "v"],
] as const;

/** Whether a tensor is not read: nothing is predicted in words, and of the last layer that the expert reads only keys and values count. */
export function isUnused(name: string, { language }: Sizes): boolean {
  if (name === `${VLM}lm_head.weight` || name === `${TEXT}norm.weight`) return true;
  const rest = name.startsWith(`${TEXT}layers.`) ? name.slice(`${TEXT}layers.`.length) : "";
  const layer = Number.parseInt(rest, 10);
  if (Number.isNaN(layer) || layer < language.layers - 1) return false;
  return layer >= language.layers || !/\.(input_layernorm|self_attn\.[kv]_proj)\.weight$/.test(rest);
}
