/** A service in a child process (server-child.ts) that tells its resident memory: after a full collection it can only be read there. */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { SAMPLE_MODEL } from "../src/cli/sample.ts";
import { Problem } from "../src/error/problem.ts";
import { type Child, startChild } from "../src/measure/child.ts";

/** What server-child.ts answers to "memory". */
const Reading = Type.Object({ rss_bytes: Type.Integer() });

export interface MeasuredServer {
  readonly child: Child;
  /** After a full collection. */
  residentBytes(): Promise<number | Problem>;
}

export async function startServer(device: string): Promise<MeasuredServer | Problem> {
  let heard: (message: unknown) => void = () => undefined;
  const child = await startChild({
    program: [process.execPath, join(import.meta.dir, "server-child.ts")],
    model: SAMPLE_MODEL,
    device,
    onMessage: (message) => heard(message),
  });
  if (child instanceof Problem) return child;
  return {
    child,
    async residentBytes() {
      const answer = await new Promise<unknown>((resolve) => {
        heard = resolve;
        child.send("memory");
      });
      if (Value.Check(Reading, answer)) return answer.rss_bytes;
      return new Problem("server-child.ts answered something else than a reading");
    },
  };
}
