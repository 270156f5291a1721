/** Types of the bundles of model folders: all of them read an instruction and make their rows by a flow. */
import type { Graph, Manifest } from "../../src/bundle/manifest.ts";
import type { Bundle } from "../../src/bundle/read.ts";

export type FlowManifest = Manifest & {
  prompt: NonNullable<Manifest["prompt"]>;
  flow: NonNullable<Manifest["flow"]>;
  tokenizer: string;
  graphs: { denoise: Graph };
};

export type FlowBundle = Bundle & { readonly manifest: FlowManifest };
