/** A process with a connection for each request: sends those of its standard input all at once, prints their answers. */
import { post, type Target } from "./payers.ts";

const { target, bodies } = (await Bun.stdin.json()) as { target: Target; bodies: readonly string[] };
const answers = await Promise.all(bodies.map((body) => post(target, body)));
await Bun.write(Bun.stdout, JSON.stringify(answers));
