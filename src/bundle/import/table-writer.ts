/** Writes a weight table module by module, in the names of PyTorch and of Hugging Face's `transformers`, which several families share. */
import type { Part, WeightTable } from "./checkpoint-weights.ts";

/** A graph's name and theirs. */
const INPUTS = [
  ["query", "q"],
  ["key", "k"],
  ["value", "v"],
] as const;

export class TableWriter {
  private readonly parts = new Map<string, readonly Part[]>();

  get table(): WeightTable {
    return this.parts;
  }

  as(name: string, ...parts: readonly Part[]): void {
    this.parts.set(name, parts);
  }

  /** `nn.Linear` without a bias. */
  matrix(name: string, from: string): void {
    this.as(`${name}.weight`, { tensor: `${from}.weight`, transpose: true });
  }

  bias(name: string, from: string): void {
    this.as(`${name}.bias`, { tensor: `${from}.bias` });
  }

  linear(name: string, from: string): void {
    this.matrix(name, from);
    this.bias(name, from);
  }

  /** `nn.Conv2d`. */
  convolution(name: string, from: string): void {
    this.as(`${name}.weight`, { tensor: `${from}.weight` });
    this.bias(name, from);
  }

  /** The scale of a norm: `plus` and what the checkpoint has. */
  scale(name: string, from: string, plus?: number): void {
    this.as(`${name}.scale`, { tensor: `${from}.weight`, ...(plus !== undefined && { plus }) });
  }

  layerNorm(name: string, from: string): void {
    this.scale(name, from);
    this.bias(name, from);
  }

  /** SigLIP (`modeling_siglip.py`): patches, blocks and the norm behind them. */
  siglip(from: string, layers: number): void {
    this.convolution("vision.patch", `${from}embeddings.patch_embedding`);
    this.as("vision.positions", { tensor: `${from}embeddings.position_embedding.weight` });
    for (let layer = 0; layer < layers; layer += 1) {
      const [name, block] = [`vision.blocks.${layer}`, `${from}encoder.layers.${layer}`];
      this.layerNorm(`${name}.attention.norm`, `${block}.layer_norm1`);
      for (const [own, theirs] of [...INPUTS, ["output", "out"]] as const)
        this.linear(`${name}.attention.${own}`, `${block}.self_attn.${theirs}_proj`);
      this.layerNorm(`${name}.mlp.norm`, `${block}.layer_norm2`);
      this.linear(`${name}.mlp.up`, `${block}.mlp.fc1`);
      this.linear(`${name}.mlp.down`, `${block}.mlp.fc2`);
    }
    this.layerNorm("vision.norm", `${from}post_layernorm`);
  }

  /** Products of a block of Llama or Gemma. Keys and values of the prefix are projected under the name `context`. */
  block(name: string, from: string, context = name): void {
    for (const [own, theirs] of INPUTS)
      this.matrix(`${own === "query" ? name : context}.${own}`, `${from}.self_attn.${theirs}_proj`);
    this.matrix(`${name}.output`, `${from}.self_attn.o_proj`);
    for (const part of ["gate", "up", "down"]) this.matrix(`${name}.mlp.${part}`, `${from}.mlp.${part}_proj`);
  }

  /** Both norms of such a block, plain (Llama), or added to 1 (Gemma). */
  blockNorms(name: string, from: string, plus?: 1): void {
    this.scale(`${name}.norm1`, `${from}.input_layernorm`, plus);
    this.scale(`${name}.norm2`, `${from}.post_attention_layernorm`, plus);
  }
}
