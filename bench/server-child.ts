/**
 * The measured process of bench/memory.ts: `bun bench/server-child.ts serve FLAGS…` is `tendon serve`, and answers the message
 * "memory" with its resident memory after a full collection.
 */
import { given } from "../src/cli/command.ts";
import { serve } from "../src/cli/serve.ts";
import { Problem } from "../src/error.ts";

process.on("message", (message) => {
  if (message !== "memory") return;
  Bun.gc(true);
  process.send?.({ rss_bytes: process.memoryUsage.rss() });
});

const parsed = given(serve, process.argv.slice(3));
const end = parsed instanceof Problem ? parsed : await serve.run(parsed);
if (end instanceof Problem) process.stderr.write(`error: ${end.message}\n`);
process.exit(end instanceof Problem ? end.exit : end);
