/** A service in a child process (server-child.ts) that answers questions about its own process, which only it can know. */
import { join } from "node:path";
import { type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Problem } from "../src/error/problem.ts";
import { type Child, startChild } from "../src/measure/child.ts";
import { type Summary, summary } from "../src/measure/stats.ts";

/** The questions, each with what server-child.ts answers. */
const Memory = Type.Object({ rss_bytes: Type.Integer() });
const Late = Type.Object({ late_ms: Type.Number() });
const Starts = Type.Object({ starts_ms: Type.Array(Type.Number()) });

export interface MeasuredServer {
  readonly child: Child;
  /** Resident memory after a full collection. */
  residentBytes(): Promise<number | Problem>;
  /** The greatest lateness of a 1 ms timer since this was asked last. */
  lateMs(): Promise<number | Problem>;
  /** From the arrival of an observation to its model's start, by the service's clock: the last 1024 of a route. */
  modelStart(route: "chat" | "episode"): Promise<Summary | Problem>;
}

export async function startServer(device: string): Promise<MeasuredServer | Problem> {
  let heard: (message: unknown) => void = () => undefined;
  const child = await startChild({
    program: [process.execPath, join(import.meta.dir, "server-child.ts")],
    device,
    onMessage: (message) => heard(message),
  });
  if (child instanceof Problem) return child;
  const ask = async <S extends TSchema>(question: string, schema: S) => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    heard = resolve;
    child.send(question);
    const answer = await promise;
    if (Value.Check(schema, answer)) return answer;
    return new Problem(`server-child.ts answered something else to '${question}'`);
  };
  return {
    child,
    async residentBytes() {
      const answer = await ask("memory", Memory);
      return answer instanceof Problem ? answer : answer.rss_bytes;
    },
    async lateMs() {
      const answer = await ask("late", Late);
      return answer instanceof Problem ? answer : answer.late_ms;
    },
    async modelStart(route) {
      const answer = await ask(`starts ${route}`, Starts);
      return answer instanceof Problem ? answer : summary(answer.starts_ms);
    },
  };
}
