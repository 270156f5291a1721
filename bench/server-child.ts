/**
 * The process behind bench/measured-server.ts: `bun bench/server-child.ts serve FLAGS…` is `tendon serve`, and answers the messages
 * "memory" with its resident memory after a full collection, "late" with the greatest lateness of a 1 ms timer and the most processor
 * time of its thread between two ticks since "late" was asked last (the first one starts the timer), "starts ROUTE" with the last values of `tendon_start_ms`.
 */
import { given } from "../src/cli/frame/command.ts";
import { serve } from "../src/cli/serve.ts";
import { Problem } from "../src/std/problem.ts";
import { recordStarts } from "./start-times.ts";
import { threadUs } from "./timed-ffi.ts";

let timed = false;
let worst = 0;
let worstCpu = 0;

function startTimer(): void {
  let expected = performance.now() + 1;
  let cpuBefore = threadUs();
  const tick = () => {
    const now = performance.now();
    const cpu = threadUs();
    worstCpu = Math.max(worstCpu, (cpu - cpuBefore) / 1000);
    cpuBefore = cpu;
    worst = Math.max(worst, now - expected);
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
    process.send?.({ late_ms: worst, cpu_ms: worstCpu });
    worst = 0;
    worstCpu = 0;
  }
  if (what === "starts") process.send?.({ starts_ms: startsOf(route) });
  if (what !== "memory") return;
  Bun.gc(true);
  process.send?.({ rss_bytes: process.memoryUsage.rss() });
});

const parsed = given(serve, process.argv.slice(3));
const end = parsed instanceof Problem ? parsed : await serve.run(parsed);
if (end instanceof Problem) process.stderr.write(`error: ${end.message}\n`);
process.exit(end instanceof Problem ? end.exit : end);
