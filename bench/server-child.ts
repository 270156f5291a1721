/**
 * `tendon serve` as proofs need it: `bun bench/server-child.ts ANSWERS serve FLAGS…`. ANSWERS is `real`, or the store that answers in place of
 * the ledger (at-once-store.ts). It answers three messages. "memory": its resident memory after a full collection. "late": the greatest
 * lateness of a 1 ms timer, and the most processor time of its thread between two ticks, since the last "late" (the first one starts
 * the timer). "starts ROUTE": the last values of `tendon_start_ms`, of which /metrics has buckets alone.
 */
import { given } from "../src/cli/frame/command.ts";
import { serve, serveWith } from "../src/cli/serve.ts";
import { openStore } from "../src/service/store.ts";
import { Durations } from "../src/std/metrics.ts";
import { Problem } from "../src/std/problem.ts";
import { openInstead } from "./at-once-store.ts";
import { threadUs } from "./timed-ffi.ts";

/** The number of starts kept for each route. It is fixed, so that the memory of the measured service does not grow by it. */
const STARTS_KEPT = 1024;

/** Records from now on; what it returns reads the values of one route. */
function recordStarts(): (route: string) => number[] {
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

let timed = false;
let worst = { wallMs: 0, cpuMs: 0 };

function startTimer(): void {
  let expected = performance.now() + 1;
  let cpuBefore = threadUs();
  const tick = () => {
    const now = performance.now();
    const cpu = threadUs();
    worst.cpuMs = Math.max(worst.cpuMs, (cpu - cpuBefore) / 1000);
    cpuBefore = cpu;
    worst.wallMs = Math.max(worst.wallMs, now - expected);
    // A tick that came late does not make the next one late.
    expected = now + 1;
  };
  setInterval(tick, 1).unref();
}

const startsOf = recordStarts();

process.on("message", (message) => {
  const [what, route = ""] = String(message).split(" ");
  if (what === "late") {
    if (!timed) startTimer();
    timed = true;
    process.send?.(worst);
    worst = { wallMs: 0, cpuMs: 0 };
  }
  if (what === "starts") process.send?.(startsOf(route));
  if (what !== "memory") return;
  Bun.gc(true);
  process.send?.(process.memoryUsage.rss());
});

const [answers, , ...flags] = process.argv.slice(2);
const parsed = given(serve, flags);
const open = answers === "bare" || answers === "at once" ? openInstead(answers) : openStore;
const end = parsed instanceof Problem ? parsed : await serveWith(parsed, open);
if (end instanceof Problem) process.stderr.write(`error: ${end.message}\n`);
process.exit(end instanceof Problem ? end.exit : end);
