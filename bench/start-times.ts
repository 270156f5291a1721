/**
 * Keeps the last values of `tendon_start_ms` exactly, in the measured process (server-child.ts): /metrics has buckets alone, and a
 * proof needs quantiles. Of a fixed size, so that a service whose memory is measured does not grow by it.
 */
import { Durations } from "../src/std/metrics.ts";

/** Of each route. */
const STARTS_KEPT = 1024;

/** Records from now on; what it returns reads the values of one route. */
export function recordStarts(): (route: string) => number[] {
  const kept = new Map<string, { values: Float64Array; count: number }>();
  const { add } = Durations.prototype;
  Durations.prototype.add = function (ms) {
    const one = kept.get(this.label) ?? { values: new Float64Array(STARTS_KEPT), count: 0 };
    kept.set(this.label, one);
    one.values[one.count % STARTS_KEPT] = ms;
    one.count += 1;
    add.call(this, ms);
  };
  return (route) => {
    const one = kept.get(route);
    return one === undefined ? [] : [...one.values.slice(0, one.count)];
  };
}
