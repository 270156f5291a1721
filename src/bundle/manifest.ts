/**
 * The bundle manifest, `manifest.json` in a bundle folder: everything that differs between models, as data.
 *
 * A bundle folder holds `manifest.json`, the graphs `prefill.onnx` and `denoise.onnx` (one flow step), `tokenizer.json`,
 * `norm.json` and `parity/`. The native engine reads the same file (native/src/manifest.rs).
 */
import { type Static, Type } from "@sinclair/typebox";
import { FactFields } from "./manifest-facts.ts";
import { Graph } from "./manifest-graphs.ts";
import { closed } from "./shape.ts";

export const Manifest = closed({
  format: Type.Literal(1),
  ...FactFields,
  /** sha256 over the digests of graphs, tokenizer and norm statistics (digest.ts), 64 hexadecimal digits; keys the noise. */
  export_id: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  /** `extend` reads the later observations of a model with memory. */
  graphs: closed({ prefill: Graph, extend: Type.Optional(Graph), denoise: Graph }),
  tokenizer: Type.String(),
  norm: Type.String(),
  /** Inputs with the expected chunk, and the largest allowed difference in robot units. */
  parity: closed({ file: Type.String(), tolerance: Type.Number({ exclusiveMinimum: 0 }) }),
  files: Type.Array(
    closed({
      path: Type.String({ pattern: "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$" }),
      size: Type.Integer({ minimum: 0 }),
      sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    }),
  ),
});
export type Manifest = Static<typeof Manifest>;

const ColumnStats = closed({
  q01: Type.Optional(Type.Array(Type.Number())),
  q99: Type.Optional(Type.Array(Type.Number())),
  mean: Type.Optional(Type.Array(Type.Number())),
  std: Type.Optional(Type.Array(Type.Number())),
});

/** `norm.json`: statistics per column, in the order of `state.columns` and `action.columns`. Unused arrays may be absent. */
export const NormStats = closed({ state: ColumnStats, action: ColumnStats });
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
