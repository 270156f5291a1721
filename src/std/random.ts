/** Seeded random numbers, the same bits on every machine: integer arithmetic only. Not for secrets (base62.ts), not for the noise of the flow (native engine). */
import { createHash } from "node:crypto";

/** One stream of 32-bit words, xoshiro128** (Blackman and Vigna 2018), its state taken from the SHA-256 of a key. */
export class RandomStream {
  // An array of four takes some twenty times as long.
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  /** Streams of different keys are independent, so adding one never shifts another. */
  constructor(key: string) {
    const digest = createHash("sha256").update(key, "utf8").digest();
    // All zero is the one state that xoshiro must not have; 128 bits of SHA-256 are not.
    this.a = digest.readInt32LE(0);
    this.b = digest.readInt32LE(4);
    this.c = digest.readInt32LE(8);
    this.d = digest.readInt32LE(12);
  }

  /** The next word, 0 to 2^32 − 1. */
  word(): number {
    const { a, b, c, d } = this;
    const third = c ^ a;
    const fourth = d ^ b;
    this.a = a ^ fourth;
    this.b = b ^ third;
    this.c = third ^ (b << 9);
    this.d = rotate(fourth, 11);
    return Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
  }

  /** Uniform in [−1, 1) with 24 bits, so that every value is an exact float32. */
  signed(): number {
    return (this.word() >>> 8) / 2 ** 23 - 1;
  }

  /** Writes `middle + reach · signed()` over all of `target`. */
  spread(target: Float32Array, middle: number, reach: number): void {
    for (let at = 0; at < target.length; at += 1) target[at] = middle + reach * this.signed();
  }
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
