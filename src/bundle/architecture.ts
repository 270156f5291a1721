/** `models/<name>/model.json`: a model's facts plus the architecture of its reference bundle. */
import { type Static, Type } from "@sinclair/typebox";
import { FactFields } from "./manifest-facts.ts";
import { closed, oneOf } from "./schema.ts";

const Size = Type.Integer({ minimum: 1, maximum: 65_536 });

const Common = {
  /** Seed of the random weights. */
  seed: Type.Integer({ minimum: 0 }),
  /** Byte pairs that training the tokenizer merges. */
  tokenizer: closed({ merges: Type.Integer({ minimum: 0, maximum: 4096 }) }),
};

/**
 * How the graphs of a flow-vla take what a run gives them, where that is not the plainest way: published policies differ in this. See
 * input-roles.ts for what each input is.
 */
const FlowInputs = closed({
  /** The policy's views, in its order: images and a mask of their own for each, black and false for one that the model has no camera for. */
  views: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 8 })),
  /** The state is the last token of the prefix, and no other token of it sees that one (SmolVLA). Absent, it is a token before the rows. */
  state: Type.Optional(Type.Literal("prefix")),
  /** The time is floor(t · buckets), an integer. */
  time_buckets: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
});

/** How blocks of a transformer are computed, where that is not Gemma's way. */
const BlockForm = {
  /** In the gated MLP. Absent, gelu. */
  activation: Type.Optional(oneOf("gelu", "silu")),
  /** The epsilon of RMS norms. Absent, 1e-6. */
  epsilon: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
};

/** Sizes of a flow-vla, which are counts, and the forms of its parts. */
const Architecture = closed({
  ...Common,
  vision: closed({
    width: Size,
    layers: Size,
    heads: Size,
    mlp: Size,
    patch: Size,
    /** Patches each way that become one token, by a projection without bias (SmolVLM). Absent, each patch is one. */
    shuffle: Type.Optional(Size),
    /** Factor of the tokens as the language model reads them. Absent, 1. */
    scale: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
  }),
  /** `kv_heads` divides `heads`; `head_dim` is even. The expert reads this cache, so it has the same heads. */
  language: closed({
    width: Size,
    layers: Size,
    heads: Size,
    kv_heads: Size,
    head_dim: Size,
    mlp: Size,
    /** Base of the wavelengths of rotary positions; absent, 10000. */
    rope_base: Type.Optional(Type.Number({ exclusiveMinimum: 1 })),
    ...BlockForm,
    /** Factor of the rows that are read from the table of tokens; absent, 1. */
    scale: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
    /** Rows of the table of tokens, where it has more than the tokenizer has ids: those of the model whose size this is. */
    vocabulary: Type.Optional(Type.Integer({ minimum: 1, maximum: 1 << 20 })),
  }),
  expert: closed({
    width: Size,
    mlp: Size,
    time_width: Size,
    ...BlockForm,
    /**
     * `adaptive`: the time scales, shifts and gates each block (pi0.5). `joined`: it is joined with each row before the first block, by a
     * product with as many columns as the expert is wide (pi0, SmolVLA). Absent, adaptive.
     */
    time: Type.Optional(oneOf("adaptive", "joined")),
    /** Rows see themselves and those before them alone (SmolVLA). Absent, all of them see each other. */
    rows: Type.Optional(Type.Literal("causal")),
    /**
     * Its blocks, by the layer of the language model whose keys and values each reads. `prefix`: it reads nothing else, projected once more
     * and by queries that count positions from 0 (SmolVLA). Absent, a block for each layer, and it reads its own rows as well.
     */
    blocks: Type.Optional(
      Type.Array(closed({ layer: Type.Integer({ minimum: 0 }), reads: Type.Optional(Type.Literal("prefix")) }), {
        minItems: 1,
      }),
    ),
  }),
  inputs: Type.Optional(FlowInputs),
});
export type Architecture = Static<typeof Architecture>;

/** Sizes of a world-action model; all are counts. */
const WorldArchitecture = closed({
  ...Common,
  /**
   * One transformer over latent frames, state and action rows. `head_dim` is even; `channels` are those of one token of a
   * latent frame, which covers `patch` × `patch` pixels of each of its camera frames.
   */
  transformer: closed({
    width: Size,
    layers: Size,
    heads: Size,
    head_dim: Size,
    mlp: Size,
    time_width: Size,
    patch: Size,
    channels: Size,
  }),
});
export type WorldArchitecture = Static<typeof WorldArchitecture>;

export const ModelFile = closed({
  ...FactFields,
  architecture: Type.Union([Architecture, WorldArchitecture]),
  /**
   * There for a model that can also be built with int8 weights: the tolerance of that bundle, in robot units. Its vectors are
   * `parity/int8.json`; a build makes them where the folder has none (vectors.ts). The expected rows are those of its weights, and exact in
   * all else; the tolerance is what activations rounded to int8 change.
   */
  int8: Type.Optional(closed({ tolerance: Type.Number({ exclusiveMinimum: 0 }) })),
  /** The same of bf16 weights, with `parity/bf16.json`. Sums are of float32: on a CPU nothing else is rounded. */
  bf16: Type.Optional(closed({ tolerance: Type.Number({ exclusiveMinimum: 0 }) })),
  /** Its rows have not been computed: `parity/chunk.json` has zeros, for every kind of weights, and its bundles are never served. */
  unproved: Type.Optional(Type.Literal(true)),
  /**
   * The same of graphs that compute in these types, with `parity/compute-f16.json` and `parity/compute-bf16.json`. The expected rows are of
   * the rounded weights, and exact in all else.
   */
  half: Type.Optional(
    closed({
      f16: Type.Optional(closed({ tolerance: Type.Number({ exclusiveMinimum: 0 }) })),
      bf16: Type.Optional(closed({ tolerance: Type.Number({ exclusiveMinimum: 0 }) })),
    }),
  ),
});
export type ModelFile = Static<typeof ModelFile>;

/** The facts alone, as they go into the manifest. */
export type Facts = Omit<ModelFile, "architecture" | "int8" | "bf16" | "half" | "unproved">;

/** Facts of a model that reads no instruction and gives its chunk with one graph: a bundle may have such a one, a model folder has none. */
export type PlainFacts = Omit<Facts, "flow" | "prompt"> & { readonly flow: null; readonly prompt: null };
export type BundleFacts = Facts | PlainFacts;
