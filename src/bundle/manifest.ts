/**
 * The bundle manifest, `manifest.json` in a bundle folder: everything that differs between models, as data.
 *
 * A bundle folder holds `manifest.json`, the graphs `prefill.onnx` and `denoise.onnx` (one flow step), `tokenizer.json`,
 * `norm.json` and `parity/`. A model without a flow has no denoise graph, and one that reads no instruction no tokenizer. The native engine reads the same file (native/src/bundle/manifest.rs).
 */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { sha256 } from "../std/file-digest.ts";
import { FactFields } from "./manifest-facts.ts";
import { closed, oneOf } from "./schema.ts";

/** `prompt`: the tokens that the prompt is padded to; `prefix`: those, the tokens of all images, and that of a state which prefill reads. Both only with `prompt.buckets`. */
const Dim = Type.Union([
  Type.Literal("batch"),
  Type.Literal("prompt"),
  Type.Literal("prefix"),
  Type.Integer({ minimum: 1 }),
]);
const Dtype = oneOf("f32", "f16", "bf16", "i64", "u8", "bool");

/** The sources of inputs (input-roles.ts), in the order in which the manifests of reference bundles list the inputs. */
export const INPUT_ROLES = [
  "images",
  "tokens",
  "token_mask",
  "image_mask",
  "latent",
  "video_latent",
  "time",
  "state",
  "cache",
  "memory_length",
  "memory",
  "block_length",
  "block",
] as const;
export type InputRole = (typeof INPUT_ROLES)[number];

const GraphInput = closed({
  name: Type.String(),
  /**
   * The source of its values: one of the roles in input-roles.ts, which has the types and shapes of each. Any other word is told by
   * `contradiction`, with the nearest one.
   */
  role: Type.Unsafe<InputRole>(Type.String()),
  /** The output of the prefill graph that a `cache` is, and the block there that a `block` or `memory` is. */
  from: Type.Optional(Type.String()),
  dtype: Dtype,
  shape: Type.Array(Dim),
  /** A `time` is floor(t · buckets) in place of t, as GR00T has it. Integers need it. */
  buckets: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  /** The views in `images` and `image_mask`, by the names of their cameras; absent, those of the model. */
  cameras: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 16 })),
});

const GraphOutput = closed({
  name: Type.String(),
  /**
   * `cache`: what the denoise graph reads; `block`: what an observation adds to its episode's memory, f32, f16 or bf16 [R, …,
   * tokens, width] with the tokens of the longest block, zeros behind those written; `velocity` f32 [R, rows, action.width]; `video_velocity`.
   * `actions` f32 [B, rows, action.width]: the normalised chunk, of the prefill graph of a model without a flow.
   */
  role: oneOf("cache", "block", "velocity", "video_velocity", "actions"),
  dtype: Dtype,
  shape: Type.Array(Dim),
});

export const Graph = closed({ file: Type.String(), inputs: Type.Array(GraphInput), outputs: Type.Array(GraphOutput) });
export type Graph = Static<typeof Graph>;

/** The facts of a bundle. */
export const BundleFields = {
  ...FactFields,
  /** Null: the model reads no instruction. */
  prompt: Type.Union([FactFields.prompt, Type.Null()]),
  /** Null: one graph gives the chunk, without noise (ACT). */
  flow: Type.Union([FactFields.flow, Type.Null()]),
};

export const Manifest = closed({
  format: Type.Literal(1),
  ...BundleFields,
  /**
   * How the matrices of its blocks are kept: absent, float32; `int8` with a float32 scale for each output (smaller-weights.ts), and activations
   * are rounded to int8 before they are multiplied; `bf16`, like the table of tokens, and sums are of float32. Not with `compute`:
   * they are of its type then.
   */
  weights: Type.Optional(oneOf("int8", "bf16")),
  /**
   * Absent, the graphs compute in float32. Else in this type, of which their weights and caches are: a build for GPUs (layers.ts says what
   * stays float32).
   */
  compute: Type.Optional(oneOf("f16", "bf16")),
  /** sha256 over the digests of graphs, tokenizer and norm statistics (exportId), 64 hexadecimal digits; keys the noise. */
  export_id: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  /** `extend` reads the later observations of a model with memory; `denoise` is one step of a flow. */
  graphs: closed({ prefill: Graph, extend: Type.Optional(Graph), denoise: Type.Optional(Graph) }),
  /**
   * The files of the graphs' large weights, absent where the graphs hold them themselves: ONNX's external data, named in the graphs as here.
   * Mapped when the bundle is loaded: nobody may write into these files while it is served (native/src/bundle/weights.rs).
   */
  weight_files: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
  /** There exactly if there is a prompt. */
  tokenizer: Type.Optional(Type.String()),
  norm: Type.String(),
  /** Inputs with the expected chunk of these weights, and the largest allowed difference in robot units. */
  parity: closed({
    file: Type.String(),
    tolerance: Type.Number({ exclusiveMinimum: 0 }),
    /**
     * Its rows have not been computed: the vectors have zeros, and any finite row is within the tolerance. What is computed may be wrong
     * and nothing shows it. So such a bundle is never served: the engine refuses it, but for a command that measures (`tendon bench gpu`).
     */
    unproved: Type.Optional(Type.Literal(true)),
    /**
     * Its observation is not of this robot: drawn pictures, or those of somebody else's test. A policy may well jump there, so its rows are
     * not held against the limits of jumps.
     */
    drawn: Type.Optional(Type.Literal(true)),
    /** The publisher's own values at every stage, which `tendon bundle verify` compares: `Golden`, and the safetensors file beside it. */
    golden: Type.Optional(
      closed({
        cases: Type.String(),
        values: Type.String(),
        /** The weights are not those of the values: import has rounded them. */
        rounded: Type.Optional(Type.Literal(true)),
      }),
    ),
  }),
  /** The checkpoint that the bundle was imported from: the publisher's layout, and its files by their names. */
  origin: Type.Optional(
    closed({
      layout: Type.String({ minLength: 1 }),
      files: Type.Array(closed({ path: Type.String(), sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }) })),
    }),
  ),
  files: Type.Array(
    closed({
      path: Type.String({ pattern: "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$" }),
      size: Type.Integer({ minimum: 0 }),
      sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    }),
  ),
});
export type Manifest = Static<typeof Manifest>;

/** One value per column. */
const Columns = Type.Array(Type.Number());

function statistics<S extends TSchema>(of: S) {
  const one = Type.Optional(of);
  return closed({ q01: one, q99: one, min: one, max: one, mean: one, std: one });
}

/**
 * `norm.json`: statistics per column, in the order of `state.columns` and `action.columns`. Unused arrays may be absent. One of the
 * actions may also be a table, such an array for each row of the chunk (GR00T's relative actions).
 */
export const NormStats = closed({
  state: statistics(Columns),
  action: statistics(Type.Union([Columns, Type.Array(Columns)])),
});
export type NormStats = Static<typeof NormStats>;

/** `parity/chunk.json`: observations of one episode and the chunks that an independent implementation computed from the same weights. */
export const Parity = closed({
  instruction: Type.String(),
  seed: Type.Integer({ minimum: 0 }),
  observations: Type.Array(
    closed({
      /** JPEG files beside this one, in wire order. */
      frames: Type.Array(Type.String()),
      /** The model's state vector in robot units, in the order of `state.columns`. */
      state: Type.Array(Type.Number()),
      /** Rows that the chunk continues, in robot units: they are its first ones. Absent, none. */
      prefix: Type.Optional(Type.Array(Type.Array(Type.Number()))),
      step: Type.Integer({ minimum: 0 }),
      /** Rows in robot units. */
      actions: Type.Array(Type.Array(Type.Number())),
      /** The memory's window starts anew. */
      cache_reset: Type.Boolean(),
    }),
    { minItems: 1 },
  ),
  /** What computed it, for people. */
  provenance: Type.String(),
});
export type Parity = Static<typeof Parity>;

/**
 * `parity/golden.json`. The values of case N are in `golden.safetensors`, f32 unless said. A stage that has no value is not compared, but
 * `noise` of a flow and one of `actions` and `rows` must be there.
 * - `N.noise` [rows, width]; `N.images.K` [3, h, w] of view K in the policy's order; `N.state`, normalised.
 * - `N.tokens`, i64 without padding; `N.image_tokens.K` [tokens, width].
 * - `N.past_k.L` and `N.past_v.L` [heads, valid tokens, head width] of layer L; keys after rotation.
 * - `N.velocity.S` [rows, width] of step S; `N.actions` [rows, width] at the end of the flow; `N.rows` [rows, columns] in robot units.
 */
export const Golden = closed({
  /** The code that computed them, its versions and the script, for people. */
  provenance: Type.String({ minLength: 1 }),
  cases: Type.Array(
    closed({
      instruction: Type.String(),
      /** Robot units, in the order of `state.columns`. */
      state: Type.Array(Type.Number()),
      /** A JPEG file for each camera of the manifest, by its name; null for a view that has no picture. */
      frames: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])),
    }),
    { minItems: 1 },
  ),
});
export type Golden = Static<typeof Golden>;

/**
 * `export_id`: SHA-256 over one line `<sha256>  <path>\n` for each graph and weight file, the tokenizer and the norm
 * statistics, in path order.
 *
 * Without the parity vectors: they depend on the noise, which is keyed by this id, so the id must not depend on them.
 */
export function exportId(
  files: Manifest["files"],
  { graphs, weight_files = [], tokenizer, norm }: Pick<Manifest, "graphs" | "weight_files" | "tokenizer" | "norm">,
): string {
  const named = [...Object.values(graphs).map(({ file }) => file), ...weight_files, norm];
  const counted = new Set(tokenizer === undefined ? named : [...named, tokenizer]);
  const lines = files
    .filter((file) => counted.has(file.path))
    .sort((one, other) => (one.path < other.path ? -1 : 1))
    .map((file) => `${file.sha256}  ${file.path}\n`);
  return sha256(lines.join(""));
}
