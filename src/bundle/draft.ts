/** A bundle before it is written: its files and its manifest, the same for a bundle that is built and one that is imported. */
import { join } from "node:path";
import { sha256 } from "../std/file-digest.ts";
import { Problem } from "../std/problem.ts";
import type { BundleFacts } from "./architecture.ts";
import { contradiction } from "./consistency.ts";
import { writeFiles, writeFolder } from "./folder.ts";
import type { Graphs } from "./graph.ts";
import { exportId, Manifest, type NormStats, type Parity } from "./manifest.ts";
import { schemaFault } from "./schema.ts";
import { statisticFault } from "./statistics.ts";
import { type Progress, WEIGHT_FILE, WeightLayout } from "./weight-file.ts";
import type { Half, Precision } from "./weights.ts";

/** The vectors in a bundle, and in a model folder those of float32. */
export const CHUNK = "chunk.json";
/** Weights of a graph in its own file. One message of ONNX has at most 2 GiB. */
const INLINE_BYTES_MAX = 1 << 30;

interface Content {
  readonly facts: BundleFacts;
  readonly graphs: Graphs;
  readonly norm: NormStats;
  readonly precision: Precision;
  readonly compute?: Half;
  /** `tokenizer.json`, of a model that reads an instruction. */
  readonly tokenizer?: string;
  readonly proof: Omit<Manifest["parity"], "file">;
  readonly origin?: Manifest["origin"];
  /** Files of the folder `parity`; one of them is `CHUNK`. */
  readonly parity: ReadonlyMap<string, Uint8Array>;
}

export interface Writing {
  readonly progress?: Progress;
  /** Called with all files in `folder`, before the folder has its name: vectors in place of those that were given. */
  readonly prove?: (manifest: Manifest, folder: string) => Promise<Parity | Problem>;
}

type BundleFile = Manifest["files"][number];

export class Draft {
  /** Path in the bundle → bytes. */
  private readonly data: Map<string, Uint8Array>;
  private readonly layout: WeightLayout | undefined;
  /** The digest of the weight file, zeros before it is written. */
  private weightDigest = "0".repeat(64);

  constructor(
    private readonly content: Content,
    inlineBytesMax = INLINE_BYTES_MAX,
  ) {
    const { graphs, precision, parity, norm, tokenizer } = content;
    const layout = precision === "bf16" || largest(graphs) > inlineBytesMax ? new WeightLayout() : undefined;
    this.layout = layout;
    this.data = new Map([...parity].map(([path, bytes]) => [`parity/${path}`, bytes]));
    for (const graph of inOrder(graphs)) {
      this.data.set(graph.description.file, graph.bytes(layout && ((values) => layout.place(values))));
    }
    this.data.set("norm.json", encode(norm));
    if (tokenizer !== undefined) this.data.set("tokenizer.json", new TextEncoder().encode(tokenizer));
  }

  manifest(): Manifest {
    const { facts, graphs, precision, compute, proof, origin, tokenizer } = this.content;
    const { prefill, extend, denoise } = graphs;
    const later = extend && { extend: extend.description };
    const parts = {
      graphs: { prefill: prefill.description, ...later, ...(denoise && { denoise: denoise.description }) },
      ...(this.layout && { weight_files: [WEIGHT_FILE] }),
      ...(tokenizer !== undefined && { tokenizer: "tokenizer.json" }),
      norm: "norm.json",
    };
    const weights = this.layout ? [{ path: WEIGHT_FILE, size: this.layout.bytes, sha256: this.weightDigest }] : [];
    const files = [...listed(this.data), ...weights].sort((one, other) => (one.path < other.path ? -1 : 1));
    return {
      format: 1,
      ...facts,
      ...(precision === "f32" ? {} : { weights: precision }),
      ...(compute && { compute }),
      export_id: exportId(files, parts),
      ...parts,
      parity: { file: `parity/${CHUNK}`, ...proof },
      ...(origin && { origin }),
      files,
    };
  }

  /** The first fault of its manifest, or contradiction between its parts. */
  fault(): string | undefined {
    const manifest = this.manifest();
    return schemaFault(Manifest, manifest) ?? contradiction(manifest) ?? statisticFault(manifest, this.content.norm);
  }

  /** Its files, with all weights in the graphs. */
  inlineData(): Map<string, Uint8Array> {
    const inline = inOrder(this.content.graphs).map((graph) => [graph.description.file, graph.bytes()] as const);
    return new Map([...this.data, ...inline]);
  }

  /** Takes these vectors. */
  prove(vectors: Parity): void {
    this.data.set(`parity/${CHUNK}`, encode(vectors));
  }

  async write(outDir: string, { progress, prove }: Writing): Promise<Manifest | Problem> {
    const unwritten = await writeFolder(outDir, async (folder) => {
      if (this.layout) this.weightDigest = await this.layout.write(join(folder, WEIGHT_FILE), progress);
      await writeFiles(folder, this.data);
      const vectors = await prove?.(this.manifest(), folder);
      if (vectors instanceof Problem) return vectors;
      if (vectors) this.prove(vectors);
      const path = `parity/${CHUNK}`;
      const proved = new Map([...this.data].filter(([name]) => name === path));
      await writeFiles(folder, proved.set("manifest.json", encode(this.manifest())));
      return undefined;
    });
    return unwritten ?? this.manifest();
  }
}

function inOrder({ prefill, extend, denoise }: Graphs) {
  return [prefill, denoise, extend].filter((graph) => graph !== undefined);
}

/** Bytes of the weights of the largest graph. */
function largest(graphs: Graphs): number {
  const bytes = inOrder(graphs).map(({ tensors }) => tensors.reduce((sum, { values }) => sum + values.bytes, 0));
  return Math.max(...bytes);
}

/** Lists the files of a bundle, by their paths in it. */
function listed(data: ReadonlyMap<string, Uint8Array>): BundleFile[] {
  return [...data].map(([path, bytes]) => ({ path, size: bytes.length, sha256: sha256(bytes) }));
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
}
