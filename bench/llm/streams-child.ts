/**
 * Live streams through the service, read by a process of their own: `bun bench/llm/streams-child.ts URL KEY MODEL COUNT GAP_MS`. Prints a
 * line when all have begun, and ends with its parent.
 */
import { direct, openStreams, through } from "./target.ts";

const [url = "", apiKey = "", model = "", count = "0", gapMs = "0"] = process.argv.slice(2);
// Without a model the address is the provider's own.
const target = model === "" ? direct(url) : through({ url, apiKey }, model);
await openStreams(target, Number(count), Number(gapMs));
process.stdout.write("open\n");
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
