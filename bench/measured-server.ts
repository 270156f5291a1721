/** A service in a child process (server-child.ts) that answers what can only be read inside it: its memory, and exact start times. */
import { join } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Child, startChild } from "../src/cli/child.ts";
import { SAMPLE_MODEL } from "../src/cli/sample.ts";
import { type Summary, summary } from "../src/cli/stats.ts";
import { Problem } from "../src/error/problem.ts";

const Memory = Type.Object({ rss_bytes: Type.Integer() });
const Starts = Type.Object({ starts_ms: Type.Array(Type.Number()) });

export interface MeasuredServer {
  readonly child: Child;
  /** After a full collection. */
  residentBytes(): Promise<number | Problem>;
  /** From the arrival of an observation to its model's start, by the service's clock: the last 1024 of a route. */
  modelStart(route: "chat" | "episode"): Promise<Summary | Problem>;
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
  const ask = async <S extends TSchema>(question: string, schema: S): Promise<Static<S> | Problem> => {
    const answer = await new Promise<unknown>((resolve) => {
      heard = resolve;
      child.send(question);
    });
    if (Value.Check(schema, answer)) return answer;
    return new Problem(`server-child.ts did not answer "${question}" as expected`);
  };
  return {
    child,
    async residentBytes() {
      const answer = await ask("memory", Memory);
      return answer instanceof Problem ? answer : answer.rss_bytes;
    },
    async modelStart(route) {
      const answer = await ask(`starts ${route}`, Starts);
      return answer instanceof Problem ? answer : summary(answer.starts_ms);
    },
  };
}
