/** Seeded random numbers, the same bits on every machine: integer arithmetic only. Not for secrets (base62.ts), not for the noise of the flow (native engine). */
import { createHash } from "node:crypto";

/** One stream of 32-bit words, xoshiro128** (Blackman and Vigna 2018), its state taken from the SHA-256 of a key. */
export class RandomStream {
  private readonly state: Int32Array;

  /** Streams of different keys are independent, so adding one never shifts another. */
  constructor(key: string) {
    const digest = createHash("sha256").update(key, "utf8").digest();
    // All zero is the one state that xoshiro must not have; 128 bits of SHA-256 are not.
    this.state = Int32Array.from([0, 4, 8, 12], (offset) => digest.readInt32LE(offset));
  }

  /** The next word, 0 to 2^32 − 1. */
  word(): number {
    const state = this.state;
    const [a = 0, b = 0, c = 0, d = 0] = state;
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const third = c ^ a;
    const fourth = d ^ b;
    state[0] = a ^ fourth;
    state[1] = b ^ third;
    state[2] = third ^ (b << 9);
    state[3] = rotate(fourth, 11);
    return result;
  }

  /** Uniform in [−1, 1) with 24 bits, so that every value is an exact float32. */
  signed(): number {
    return (this.word() >>> 8) / 2 ** 23 - 1;
  }

  /** Writes `middle + reach · signed()` over all of `target`: the same words, with the state in registers. */
  spread(target: Float32Array, middle: number, reach: number): void {
    const state = this.state;
    let [a = 0, b = 0, c = 0, d = 0] = state;
    for (let at = 0; at < target.length; at += 1) {
      const word = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 8;
      target[at] = middle + reach * (word / 2 ** 23 - 1);
      const third = c ^ a;
      const fourth = d ^ b;
      const shifted = b << 9;
      b ^= third;
      a ^= fourth;
      c = third ^ shifted;
      d = rotate(fourth, 11);
    }
    state.set([a, b, c, d]);
  }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
