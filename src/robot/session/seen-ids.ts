/**
 * The observation ids that were seen in one session, as a Bloom filter of fixed size. No false negatives; about one false
 * positive in a thousand after a thousand ids, which costs one look-up in the store.
 */
const WORDS = 512;
const BITS_MASK = WORDS * 32 - 1;
const PROBES = 5;

export class SeenIds {
  private readonly words = new Uint32Array(WORDS);

  /** Adds the id; whether it may have been added before. */
  see(id: string): boolean {
    const hash = BigInt(Bun.hash(id));
    const start = Number(hash & 0xffff_ffffn);
    // Odd, so that the probes hit different bits.
    const stride = Number(hash >> 32n) | 1;
    let seen = true;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const bit = (start + probe * stride) & BITS_MASK;
      const [word, mask] = [bit >>> 5, 1 << (bit & 31)];
      const before = this.words[word] ?? 0;
      if ((before & mask) === 0) seen = false;
      this.words[word] = before | mask;
    }
    return seen;
  }
}
