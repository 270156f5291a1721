/**
 * A latency histogram of fixed memory, after HdrHistogram (Tene): buckets are linear within a power of two, so that every value is kept
 * with the same relative precision, from microseconds to minutes.
 *
 * Values are whole microseconds inside. The greatest and the least value are kept exactly; every other figure is the middle of its
 * bucket, at most `RELATIVE_ERROR` (and half a microsecond) away from what was recorded.
 */

/** Buckets between one power of two and the next. */
const PER_DOUBLING = 128;
/** Half the width of the widest bucket, relative to the values in it. */
export const RELATIVE_ERROR = 1 / (2 * PER_DOUBLING);
/** About 18 minutes, in microseconds; what is above goes to the last bucket. */
const US_MAX = 2 ** 30 - 1;
const BUCKETS = bucketOf(US_MAX) + 1;

/** The share of a distribution at or below a latency. */
interface Point {
  /** 0 to 1. */
  readonly share: number;
  readonly ms: number;
}

export class Histogram {
  private readonly counts = new Float64Array(BUCKETS);
  private leastMs = Number.POSITIVE_INFINITY;
  private greatestMs = Number.NEGATIVE_INFINITY;
  private recorded = 0;

  static of(values: readonly number[]): Histogram {
    const histogram = new Histogram();
    for (const ms of values) histogram.record(ms);
    return histogram;
  }

  /** A negative latency, which a coarse clock can give, counts as zero. */
  record(ms: number): void {
    const at = bucketOf(Math.min(US_MAX, Math.max(0, Math.round(ms * 1000))));
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.recorded += 1;
    this.leastMs = Math.min(this.leastMs, ms);
    this.greatestMs = Math.max(this.greatestMs, ms);
  }

  get count(): number {
    return this.recorded;
  }

  /** NaN for no values, as all figures. */
  get maxMs(): number {
    return this.recorded === 0 ? Number.NaN : this.greatestMs;
  }

  /** The value below or at which `percent` of all lie, 0 < percent ≤ 100, by nearest rank. */
  percentile(percent: number): number {
    if (this.recorded === 0) return Number.NaN;
    const rank = Math.max(1, Math.ceil((percent / 100) * this.recorded - 1e-9));
    if (rank >= this.recorded) return this.greatestMs;
    let seen = 0;
    for (const [at, count] of this.counts.entries()) {
      seen += count;
      if (seen >= rank) return this.within(middleMs(at));
    }
    return this.greatestMs;
  }

  /** The distribution, one point for each bucket that has values, in ascending order; the last has share 1 and is exact. */
  points(): Point[] {
    const points: Point[] = [];
    let seen = 0;
    for (const [at, count] of this.counts.entries()) {
      if (count === 0) continue;
      seen += count;
      points.push({ share: seen / this.recorded, ms: this.within(middleMs(at)) });
    }
    const last = points.pop();
    return last === undefined ? [] : [...points, { share: 1, ms: this.greatestMs }];
  }

  /** A bucket's middle may lie outside of what was recorded. */
  private within(ms: number): number {
    return Math.min(this.greatestMs, Math.max(this.leastMs, ms));
  }
}

/** One bucket per microsecond up to 2 · PER_DOUBLING; then the leading eight bits of the value choose it. */
function bucketOf(us: number): number {
  if (us < 2 * PER_DOUBLING) return us;
  const shift = 24 - Math.clz32(us);
  return shift * PER_DOUBLING + (us >>> shift);
}

/** The middle of a bucket, milliseconds. */
function middleMs(bucket: number): number {
  if (bucket < 2 * PER_DOUBLING) return bucket / 1000;
  const shift = Math.floor(bucket / PER_DOUBLING) - 1;
  const from = (bucket - shift * PER_DOUBLING) * 2 ** shift;
  return (from + (2 ** shift - 1) / 2) / 1000;
}
