/** Weights of the reference bundles: uniform random numbers from a seed, scaled by fan-in; the same bytes on every machine. */
import { RandomStream } from "../std/random.ts";
import { type Columns, type FloatType, type Source, sideBySide, streamed, type Values } from "./values.ts";
import { type Build, type Matrix, type Spread, sizeOf, type Weights } from "./weights.ts";

/** The part of `…_in.weight` in `…_out.weight`; with the random part, of gain 0.5, latents have a standard deviation of about 0.7. */
const OUT_TIED = 0.7;

export class RandomWeights implements Weights {
  constructor(
    private readonly seed: number,
    readonly build: Build,
  ) {}

  /** They depend on seed and name alone. */
  whole(name: string, dims: readonly number[], spread: Spread): Float32Array {
    const values = new Float32Array(sizeOf(dims));
    this.begin(name, dims, spread)()(values);
    return values;
  }

  later(name: string, dims: readonly number[], spread: Spread, kept: FloatType): Values {
    return streamed(`${name} ${dims} ${JSON.stringify(spread)}`, sizeOf(dims), kept, this.begin(name, dims, spread));
  }

  joined(matrices: readonly Matrix[], from: number, kept: FloatType): Values {
    const parts = matrices.map(({ name, to, gain }): Columns => {
      return { columns: to, begin: this.begin(name, [from, to], { fanIn: from, gain }) };
    });
    const key = matrices.map(({ name, to, gain }) => `${name} ${from},${to} ${gain}`).join(" | ");
    return sideBySide(key, from, kept, parts);
  }

  private begin(name: string, dims: readonly number[], spread: Spread): () => Source {
    const { towards } = spread;
    const random = this.random(name, sizeOf(dims), spread);
    return towards === undefined ? random : () => this.against(random(), name, dims, towards);
  }

  /**
   * `source` less a part of the matrix `…_in.weight`, transposed. Like a trained flow it then points away from its noise, so that rows end
   * inside the columns' ranges instead of being clamped.
   */
  private against(source: Source, name: string, [hidden = 1, width = 1]: readonly number[], towards: 1 | -1): Source {
    const into = this.whole(name.replace("_out.weight", "_in.weight"), [width, hidden], { fanIn: width });
    let done = 0;
    return (target) => {
      source(target);
      for (let at = 0; at < target.length; at += 1, done += 1) {
        const tied = into[(done % width) * hidden + Math.floor(done / width)] ?? 0;
        target[at] = (target[at] ?? 0) - towards * OUT_TIED * tied;
      }
    };
  }

  private random(name: string, count: number, { fanIn, gain = 1, offsets = [0] }: Spread): () => Source {
    // A uniform number in [-1, 1) has variance 1/3. Square roots are correctly rounded everywhere.
    const reach = gain * Math.sqrt(3 / fanIn);
    const part = count / offsets.length;
    return () => {
      const stream = new RandomStream(`${this.seed}/${name}`);
      let done = 0;
      return (target) => {
        for (let at = 0; at < target.length; ) {
          const number = Math.floor(done / part);
          const count = Math.min(target.length - at, (number + 1) * part - done);
          stream.spread(target.subarray(at, at + count), offsets[number] ?? 0, reach);
          at += count;
          done += count;
        }
      };
    };
  }
}
