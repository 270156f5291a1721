/** A service in a child process (server-child.ts) that answers questions about its own process, which only it can know. */
import { join } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Child, startChild } from "../src/measure/child.ts";
import { type Summary, summary } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";

/** How long the event loop was held, milliseconds. By wall clock it counts when others have the cores as well. */
const Late = Type.Object({ wallMs: Type.Number(), cpuMs: Type.Number() });
export type Late = Static<typeof Late>;

export interface MeasuredServer {
  readonly child: Child;
  /** Resident memory after a full collection. */
  residentBytes(): Promise<number | Problem>;
  /** Since this was asked last: the greatest lateness of a 1 ms timer, and the most processor time of its thread between two ticks. */
  late(): Promise<Late | Problem>;
  /** Times from the arrival of an observation to its model's start, by the service's clock: the last 1024 of a route. */
  modelStart(route: "chat" | "episode"): Promise<Summary | Problem>;
}

async function startServer(device: string): Promise<MeasuredServer | Problem> {
  let heard: (message: unknown) => void = () => undefined;
  const child = await startChild({
    program: [process.execPath, join(import.meta.dir, "server-child.ts"), "real"],
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
    residentBytes: () => ask("memory", Type.Integer()),
    late: () => ask("late", Late),
    async modelStart(route) {
      const ms = await ask(`starts ${route}`, Type.Array(Type.Number()));
      return ms instanceof Problem ? ms : summary(ms);
    },
  };
}

/** Runs the work against a fresh service. */
export async function onServer<T>(
  device: string,
  work: (server: MeasuredServer) => Promise<T | Problem>,
): Promise<T | Problem> {
  const server = await startServer(device);
  if (server instanceof Problem) return server;
  try {
    const done = await work(server);
    return done instanceof Problem ? await server.child.explain(done) : done;
  } finally {
    await server.child.stop();
  }
}
