/**
 * The observation ids that were ever asked for in one session: a Bloom filter of fixed size. It never forgets an id; one that it
 * takes for seen may be new, about one in a thousand after a thousand, and is then looked up in the store.
 */
const WORDS = 512;
const BITS_MASK = WORDS * 32 - 1;
const PROBES = 5;

export class SeenIds {
  private readonly words = new Uint32Array(WORDS);

  /** Whether it may have been seen before; from now on it has been. */
  see(id: string): boolean {
    const hash = BigInt(Bun.hash(id));
    const start = Number(hash & 0xffff_ffffn);
    // Odd, so that the probes do not meet.
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
