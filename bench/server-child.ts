/**
 * The process behind bench/measured-server.ts: `bun bench/server-child.ts serve FLAGS…` is `tendon serve`, and answers the message
 * "memory" with its resident memory after a full collection, and "late" with the greatest lateness of a 1 ms timer since "late"
 * was asked last.
 */
import { given } from "../src/cli/frame/command.ts";
import { serve } from "../src/cli/serve.ts";
import { Problem } from "../src/error/problem.ts";

let worst = 0;
let expected = performance.now() + 1;
setInterval(() => {
  const now = performance.now();
  worst = Math.max(worst, now - expected);
  // A tick that came late does not make the next one late.
  expected = now + 1;
}, 1).unref();

process.on("message", (message) => {
  if (message === "late") {
    process.send?.({ late_ms: worst });
    worst = 0;
  }
  if (message !== "memory") return;
  Bun.gc(true);
  process.send?.({ rss_bytes: process.memoryUsage.rss() });
});

const parsed = given(serve, process.argv.slice(3));
const end = parsed instanceof Problem ? parsed : await serve.run(parsed);
if (end instanceof Problem) process.stderr.write(`error: ${end.message}\n`);
process.exit(end instanceof Problem ? end.exit : end);
