/** Sizes of a policy by the shapes of its tensors. A tensor that is missing has the published size, so that all that is missing can be named. */
import type { Stored } from "./safetensors.ts";

export class Shapes {
  constructor(private readonly tensors: ReadonlyMap<string, Stored>) {}

  /** A tensor without values may say any size. */
  axis(name: string, at: number, published: number): number {
    const { shape, bytes = 0 } = this.tensors.get(name) ?? {};
    return (bytes > 0 ? shape?.[at] : undefined) ?? published;
  }

  /** How many modules stand under `prefix`, by the numbers that follow it: 1,000 at most. */
  count(prefix: string, published: number): number {
    const numbers = [...this.tensors.keys()].flatMap((name) => {
      const rest = name.startsWith(prefix) ? /^(\d{1,3})\./.exec(name.slice(prefix.length)) : null;
      return rest ? [Number(rest[1]) + 1] : [];
    });
    return numbers.length === 0 ? published : Math.max(...numbers);
  }

  /** SigLIP's, but for its heads, which no tensor tells. */
  siglip(
    from: string,
    published: { readonly width: number; readonly layers: number; readonly mlp: number; readonly patch: number },
  ) {
    const patches = `${from}embeddings.patch_embedding.weight`;
    return {
      width: this.axis(patches, 0, published.width),
      layers: this.count(`${from}encoder.layers.`, published.layers),
      mlp: this.axis(`${from}encoder.layers.0.mlp.fc1.weight`, 0, published.mlp),
      patch: this.axis(patches, 2, published.patch),
    };
  }
}
