/** One call over TLS from another process, since the certificates that a process trusts are fixed when it starts. */
import { Client } from "../../src/llm/provider/client.ts";
import { systemClock } from "../../src/std/clock.ts";
import { providerConfig } from "./stage.ts";

const config = providerConfig({ base_url: process.argv[2], protocol: "chat", total_seconds: 10 });
const client = new Client(config, "sk-secret", systemClock);
const text: string[] = [];
const fault = await client.call(
  { path: "x", body: "{}", stream: false, signal: new AbortController().signal },
  {
    begin: () => undefined,
    ended: false,
    bytes: (piece) => {
      text.push(Buffer.from(piece).toString());
      return undefined;
    },
  },
);
process.stdout.write(`${fault ? fault.detail : text.join("")}\n`);
process.exit(0);
