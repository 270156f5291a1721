/** One call over TLS from a process of its own: the certificates that a process trusts are fixed when it starts. */
import { Client } from "../../src/llm/provider/client.ts";
import { systemClock } from "../../src/std/clock.ts";

const client = new Client({
  baseUrl: process.argv[2] ?? "",
  apiKey: undefined,
  connections: 1,
  firstByteMs: 5_000,
  idleMs: 5_000,
  totalMs: 10_000,
  clock: systemClock,
});
const text: string[] = [];
const fault = await client.call(
  { path: "x", body: "{}", stream: false, once: false, signal: new AbortController().signal },
  {
    begin: () => undefined,
    bytes: (piece) => {
      text.push(Buffer.from(piece).toString());
      return undefined;
    },
  },
);
process.stdout.write(`${fault ? fault.detail : text.join("")}\n`);
process.exit(0);
