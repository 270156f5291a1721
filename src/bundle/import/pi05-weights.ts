/** The weights of pi0.5 (openpi `pi0_pytorch.py`, LeRobot `policies/pi05`): the sizes that they tell, and the table from a graph's names to theirs. */
import type { Architecture } from "../architecture.ts";
import type { Part, WeightTable } from "./checkpoint-weights.ts";
import { NAMES } from "./paligemma-names.ts";
import type { Stored } from "./safetensors.ts";
import { Shapes } from "./shapes.ts";
import { TableWriter } from "./table-writer.ts";

export type Sizes = Pick<Architecture, "vision" | "language" | "expert"> & {
  /** Values of a row inside the model, and patches of a picture. */
  readonly actionWidth: number;
  readonly patches: number;
};

/** Heads of SigLIP So400m, which no tensor tells; queries share one head of keys and values in every Gemma that openpi has. */
const TOWER_HEADS = 16;
const KV_HEADS = 1;

/** Sizes that the tensors tell. */
export function sizesOf(tensors: ReadonlyMap<string, Stored>): Sizes {
  const shapes = new Shapes(tensors);
  const { tower, language, expert } = NAMES;
  const headDim = shapes.axis(`${language}layers.0.self_attn.k_proj.weight`, 0, 256) / KV_HEADS;
  const tokens = tensors.has(NAMES.embedding) ? NAMES.embedding : NAMES.head;
  const width = shapes.axis(tokens, 1, 2048);
  const expertWidth = shapes.axis("action_in_proj.weight", 0, 1024);
  return {
    vision: { ...shapes.siglip(tower, { width: 1152, layers: 27, mlp: 4304, patch: 14 }), heads: TOWER_HEADS },
    language: {
      width,
      scale: Math.sqrt(width),
      layers: shapes.count(`${language}layers.`, 18),
      heads: Math.floor(shapes.axis(`${language}layers.0.self_attn.q_proj.weight`, 0, 2048) / headDim),
      kv_heads: KV_HEADS,
      head_dim: headDim,
      mlp: shapes.axis(`${language}layers.0.mlp.gate_proj.weight`, 0, 16_384),
      vocabulary: shapes.axis(tokens, 0, 257_152),
    },
    expert: {
      width: expertWidth,
      mlp: shapes.axis(`${expert}layers.0.mlp.gate_proj.weight`, 0, 4096),
      time_width: shapes.axis("time_mlp_in.weight", 1, expertWidth),
    },
    actionWidth: shapes.axis("action_in_proj.weight", 1, 32),
    patches: shapes.axis(`${tower}embeddings.position_embedding.weight`, 0, 256),
  };
}

/** The source of each tensor of the graphs. */
export function pi05Table(sizes: Sizes, tensors: ReadonlyMap<string, Stored>): WeightTable {
  const { tower, projector, language, expert } = NAMES;
  const { width } = sizes.expert;
  const writer = new TableWriter();
  writer.siglip(tower, sizes.vision.layers);
  writer.linear("vision.projection", projector);

  const tokens = tensors.has(NAMES.embedding) ? NAMES.embedding : NAMES.head;
  writer.as("language.embedding", { tensor: tokens });
  /** Scale, shift and gate of each norm, or the first `count` of them; the scale is 1 + what the layer gives. */
  const adaptive = (name: string, norms: readonly string[], count: number) => {
    const rows = [0, 1, 2].slice(0, count).map((at) => [at * width, (at + 1) * width, 3 * width] as const);
    const weights = norms.map((norm): Part => {
      return { tensor: `${norm}.dense.weight`, transpose: true, rows: [0, count * width, 3 * width] };
    });
    const biases = norms.flatMap((norm) =>
      rows.map((of, at): Part => ({ tensor: `${norm}.dense.bias`, rows: of, ...(at === 0 && { plus: 1 }) })),
    );
    writer.as(`${name}.adaptive.weight`, ...weights);
    writer.as(`${name}.adaptive.bias`, ...biases);
  };
  // The expert reads the cache of each layer of the language model, so it has as many.
  for (let layer = 0; layer < sizes.language.layers; layer += 1) {
    const [prefix, block] = [`language.blocks.${layer}`, `expert.blocks.${layer}`];
    const [ofPrefix, ofBlock] = [`${language}layers.${layer}`, `${expert}layers.${layer}`];
    // Gemma scales by 1 + w.
    writer.blockNorms(prefix, ofPrefix, 1);
    writer.block(prefix, ofPrefix);
    adaptive(block, [`${ofBlock}.input_layernorm`, `${ofBlock}.post_attention_layernorm`], 3);
    writer.block(block, ofBlock);
  }
  adaptive("expert.final", [`${expert}norm`], 2);
  writer.linear("expert.action_in", "action_in_proj");
  writer.linear("expert.action_out", "action_out_proj");
  writer.linear("expert.time_in", "time_mlp_in");
  writer.linear("expert.time_out", "time_mlp_out");
  return writer.table;
}
