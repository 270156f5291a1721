/** The weights of pi0.5 (openpi `pi0_pytorch.py`, LeRobot `policies/pi05`): the sizes that they tell, and the table from a graph's names to theirs. */
import type { Architecture } from "../architecture.ts";
import type { Part, WeightTable } from "./checkpoint-weights.ts";
import { NAMES } from "./paligemma-names.ts";
import type { Stored } from "./safetensors.ts";

export type Sizes = Pick<Architecture, "vision" | "language" | "expert"> & {
  /** Values of a row inside the model, and patches of a picture. */
  readonly actionWidth: number;
  readonly patches: number;
};

/** Heads of SigLIP So400m, which no tensor tells; queries share one head of keys and values in every Gemma that openpi has. */
const TOWER_HEADS = 16;
const KV_HEADS = 1;

/** Sizes by the shapes of tensors; the published ones where a tensor is missing, so that all that is missing can be named. */
export function sizesOf(tensors: ReadonlyMap<string, Stored>): Sizes {
  const axis = (name: string, at: number, published: number) => tensors.get(name)?.shape[at] ?? published;
  const layers = (prefix: string, published: number) => {
    const numbers = [...tensors.keys()].flatMap((name) => {
      const rest = name.startsWith(prefix) ? /^(\d{1,4})\./.exec(name.slice(prefix.length)) : null;
      return rest ? [Number(rest[1]) + 1] : [];
    });
    return numbers.length === 0 ? published : Math.max(...numbers);
  };
  const { tower, language, expert } = NAMES;
  const headDim = axis(`${language}layers.0.self_attn.k_proj.weight`, 0, 256) / KV_HEADS;
  const patch = `${tower}embeddings.patch_embedding.weight`;
  const tokens = tensors.has(NAMES.embedding) ? NAMES.embedding : NAMES.head;
  const width = axis(tokens, 1, 2048);
  const expertWidth = axis("action_in_proj.weight", 0, 1024);
  return {
    vision: {
      width: axis(patch, 0, 1152),
      layers: layers(`${tower}encoder.layers.`, 27),
      heads: TOWER_HEADS,
      mlp: axis(`${tower}encoder.layers.0.mlp.fc1.weight`, 0, 4304),
      patch: axis(patch, 2, 14),
    },
    language: {
      width,
      scale: Math.sqrt(width),
      layers: layers(`${language}layers.`, 18),
      heads: Math.floor(axis(`${language}layers.0.self_attn.q_proj.weight`, 0, 2048) / headDim),
      kv_heads: KV_HEADS,
      head_dim: headDim,
      mlp: axis(`${language}layers.0.mlp.gate_proj.weight`, 0, 16_384),
      vocabulary: axis(tokens, 0, 257_152),
    },
    expert: {
      width: expertWidth,
      mlp: axis(`${expert}layers.0.mlp.gate_proj.weight`, 0, 4096),
      time_width: axis("time_mlp_in.weight", 1, expertWidth),
    },
    actionWidth: axis("action_in_proj.weight", 1, 32),
    patches: axis(`${tower}embeddings.position_embedding.weight`, 0, 256),
  };
}

/** The source of each tensor of the graphs. */
export function pi05Table(sizes: Sizes, tensors: ReadonlyMap<string, Stored>): WeightTable {
  const { tower, projector, language, expert } = NAMES;
  const table = new Map<string, readonly Part[]>();
  const as = (name: string, ...parts: Part[]) => table.set(name, parts);
  /** A linear layer with a bias, and one without. */
  const linear = (name: string, from: string) => {
    matrix(name, from);
    as(`${name}.bias`, { tensor: `${from}.bias` });
  };
  const matrix = (name: string, from: string) => as(`${name}.weight`, { tensor: `${from}.weight`, transpose: true });
  const layerNorm = (name: string, from: string) => {
    as(`${name}.scale`, { tensor: `${from}.weight` });
    as(`${name}.bias`, { tensor: `${from}.bias` });
  };
  const gemma = (name: string, from: string) => {
    for (const [own, theirs] of [
      ["query", "q"],
      ["key", "k"],
      ["value", "v"],
      ["output", "o"],
    ] as const)
      matrix(`${name}.${own}`, `${from}.self_attn.${theirs}_proj`);
    for (const part of ["gate", "up", "down"]) matrix(`${name}.mlp.${part}`, `${from}.mlp.${part}_proj`);
  };

  as("vision.patch.weight", { tensor: `${tower}embeddings.patch_embedding.weight` });
  as("vision.patch.bias", { tensor: `${tower}embeddings.patch_embedding.bias` });
  as("vision.positions", { tensor: `${tower}embeddings.position_embedding.weight` });
  for (let layer = 0; layer < sizes.vision.layers; layer += 1) {
    const [name, from] = [`vision.blocks.${layer}`, `${tower}encoder.layers.${layer}`];
    layerNorm(`${name}.attention.norm`, `${from}.layer_norm1`);
    for (const [own, theirs] of [
      ["query", "q"],
      ["key", "k"],
      ["value", "v"],
      ["output", "out"],
    ] as const)
      linear(`${name}.attention.${own}`, `${from}.self_attn.${theirs}_proj`);
    layerNorm(`${name}.mlp.norm`, `${from}.layer_norm2`);
    linear(`${name}.mlp.up`, `${from}.mlp.fc1`);
    linear(`${name}.mlp.down`, `${from}.mlp.fc2`);
  }
  layerNorm("vision.norm", `${tower}post_layernorm`);
  linear("vision.projection", projector);

  const tokens = tensors.has(NAMES.embedding) ? NAMES.embedding : NAMES.head;
  as("language.embedding", { tensor: tokens });
  for (let layer = 0; layer < sizes.language.layers; layer += 1) {
    const [name, from] = [`language.blocks.${layer}`, `${language}layers.${layer}`];
    // Gemma scales by 1 + w.
    as(`${name}.norm1.scale`, { tensor: `${from}.input_layernorm.weight`, plus: 1 });
    as(`${name}.norm2.scale`, { tensor: `${from}.post_attention_layernorm.weight`, plus: 1 });
    gemma(name, from);
  }

  const { width } = sizes.expert;
  /** Scale, shift and gate of each norm, or the first `count` of them; the scale is 1 + what the layer gives. */
  const adaptive = (name: string, norms: readonly string[], count: number) => {
    const rows = [0, 1, 2].slice(0, count).map((at) => [at * width, (at + 1) * width, 3 * width] as const);
    as(
      `${name}.adaptive.weight`,
      ...norms.map((norm): Part => {
        return { tensor: `${norm}.dense.weight`, transpose: true, rows: [0, count * width, 3 * width] };
      }),
    );
    const biases = norms.flatMap((norm) =>
      rows.map((of, at): Part => ({ tensor: `${norm}.dense.bias`, rows: of, ...(at === 0 && { plus: 1 }) })),
    );
    as(`${name}.adaptive.bias`, ...biases);
  };
  linear("expert.action_in", "action_in_proj");
  linear("expert.action_out", "action_out_proj");
  linear("expert.time_in", "time_mlp_in");
  linear("expert.time_out", "time_mlp_out");
  // The expert reads the cache of each layer of the language model, so it has as many.
  for (let layer = 0; layer < sizes.language.layers; layer += 1) {
    const [name, from] = [`expert.blocks.${layer}`, `${expert}layers.${layer}`];
    adaptive(name, [`${from}.input_layernorm`, `${from}.post_attention_layernorm`], 3);
    gemma(name, from);
  }
  adaptive("expert.final", [`${expert}norm`], 2);
  return table;
}
