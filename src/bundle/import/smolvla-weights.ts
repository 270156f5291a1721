/**
 * The weights of SmolVLA as LeRobot 0.6.1 saves them (`policies/smolvla`): the sizes that they tell, and the table from a graph's names to theirs.
 * The configuration of the backbone is not in a checkpoint, and how many heads it has is the size of no tensor.
 */
import type { Architecture } from "../architecture.ts";
import type { WeightTable } from "./checkpoint-weights.ts";
import type { Stored } from "./safetensors.ts";
import { Shapes } from "./shapes.ts";
import { TableWriter } from "./table-writer.ts";

const VLM = "model.vlm_with_expert.vlm.";
const VISION = `${VLM}model.vision_model.`;
const TEXT = `${VLM}model.text_model.`;
const EXPERT = "model.vlm_with_expert.lm_expert.";
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

/** Sizes that the tensors tell. */
export function sizesOf(tensors: ReadonlyMap<string, Stored>, attention: Attention): Sizes {
  const shapes = new Shapes(tensors);
  const ofText = (part: string, published: number) => shapes.axis(`${TEXT}layers.0.${part}.weight`, 0, published);
  const tower = shapes.siglip(VISION, { width: 768, layers: 12, mlp: 3072, patch: 16 });
  const width = shapes.axis(EMBEDDING, 1, 960);
  const expert = shapes.axis("model.action_in_proj.weight", 0, 720);
  const blocks = blocksOf(attention, shapes.count(`${TEXT}layers.`, 16), shapes.count(`${EXPERT}layers.`, 16));
  const forms = { activation: "silu", epsilon: 1e-5 } as const;
  return {
    vision: {
      ...tower,
      shuffle: Math.round(Math.sqrt(shapes.axis(`${CONNECTOR}.weight`, 1, 16 * tower.width) / tower.width)),
      scale: Math.sqrt(width),
    },
    language: {
      width,
      // Behind the last layer that a block reads nothing is computed.
      layers: Math.max(...blocks.map(({ layer }) => layer)) + 1,
      mlp: ofText("mlp.gate_proj", 2560),
      vocabulary: shapes.axis(EMBEDDING, 0, 49_280),
      scale: Math.sqrt(width),
      // The backbone's own base is ignored (`apply_rope`).
      rope_base: 10_000,
      ...forms,
    },
    expert: {
      width: expert,
      mlp: shapes.axis(`${EXPERT}layers.0.mlp.gate_proj.weight`, 0, 2048),
      time_width: expert,
      ...forms,
      time: "joined",
      rows: "causal",
      blocks,
    },
    queries: ofText("self_attn.q_proj", 960),
    keys: ofText("self_attn.k_proj", 320),
    positions: shapes.axis(`${VISION}embeddings.position_embedding.weight`, 0, 1024),
    stateWidth: shapes.axis("model.state_proj.weight", 1, 32),
    actionWidth: shapes.axis("model.action_in_proj.weight", 1, 32),
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
  const writer = new TableWriter();
  writer.siglip(VISION, vision.layers);
  writer.matrix("vision.projection", CONNECTOR);
  writer.as("language.embedding", { tensor: EMBEDDING });
  writer.linear("language.state_in", "model.state_proj");
  for (let layer = 0; layer < language.layers; layer += 1) {
    writer.blockNorms(`language.blocks.${layer}`, `${TEXT}layers.${layer}`);
    writer.block(`language.blocks.${layer}`, `${TEXT}layers.${layer}`);
  }
  for (const [index, { reads }] of expert.blocks.entries()) {
    const [name, from] = [`expert.blocks.${index}`, `${EXPERT}layers.${index}`];
    writer.blockNorms(name, from);
    writer.block(name, from, reads === "prefix" ? `${name}.context` : name);
  }
  writer.scale("expert.final", `${EXPERT}norm`);
  writer.linear("expert.action_in", "model.action_in_proj");
  writer.linear("expert.action_time_in", "model.action_time_mlp_in");
  writer.linear("expert.action_time_out", "model.action_time_mlp_out");
  writer.linear("expert.action_out", "model.action_out_proj");
  return writer.table;
}

/** Whether a tensor is not read: nothing is predicted in words, and of the last layer that the expert reads only keys and values count. */
export function isUnused(name: string, { language }: Sizes): boolean {
  if (name === `${VLM}lm_head.weight` || name === `${TEXT}norm.weight`) return true;
  const rest = name.startsWith(`${TEXT}layers.`) ? name.slice(`${TEXT}layers.`.length) : "";
  const layer = Number.parseInt(rest, 10);
  if (Number.isNaN(layer) || layer < language.layers - 1) return false;
  return layer >= language.layers || !/\.(input_layernorm|self_attn\.[kv]_proj)\.weight$/.test(rest);
}
