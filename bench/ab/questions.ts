/** What is asked of both commits: how one robot is driven, and for how long. */
import type { Service } from "../../src/client/http.ts";
import { driveChunks } from "../../src/measure/chunk/load.ts";
import type { Scenes } from "../../src/measure/sample/scenes.ts";
import { Problem } from "../../src/std/problem.ts";
import type { Size } from "../proof.ts";
import { FRAMES_SENT, type FramesSent, SocketTurns } from "../socket-turns.ts";

/** A robot at a running service. */
interface Robot {
  /** Milliseconds of each chunk, by the client's clock. */
  drive(chunks: number): Promise<readonly number[] | Problem>;
  leave(): Promise<unknown>;
}

export interface Question {
  readonly name: string;
  readonly device: "echo" | "cpu";
  readonly chunks: { readonly [S in Size]: number };
  connect(service: Service, scenes: Scenes): Promise<Robot | Problem>;
}

/** Chunks of one turn. A turn is short against slow changes of the machine and long against one interruption. */
const QUICK = { small: 5, full: 50 } as const;

export const QUESTIONS: readonly Question[] = [
  { name: "HTTP, echo", device: "echo", chunks: QUICK, connect: async (service, scenes) => overHttp(service, scenes) },
  ...(Object.keys(FRAMES_SENT) as FramesSent[]).map((sent) => ({
    name: `${FRAMES_SENT[sent]}, echo`,
    device: "echo" as const,
    chunks: QUICK,
    connect: (service: Service, scenes: Scenes) => onSocket(service, scenes, sent),
  })),
  {
    name: "HTTP, molmoact2 on the CPU",
    device: "cpu",
    chunks: { small: 2, full: 15 },
    connect: async (service, scenes) => overHttp(service, scenes),
  },
];

function overHttp(service: Service, scenes: Scenes): Robot {
  let turn = 0;
  return {
    async drive(chunks) {
      turn += 1;
      const sessionPrefix = `turn-${turn}`;
      // A turn is a session of its own. Its first chunk opens it.
      const load = { service, robots: 1, chunks, warmup: 1, scenes, sessionPrefix, repeatable: true };
      const driven = await driveChunks(load);
      return driven instanceof Problem ? driven : driven.ms.client;
    },
    leave: async () => undefined,
  };
}

async function onSocket(service: Service, [scene = []]: Scenes, sent: FramesSent): Promise<Robot | Problem> {
  const socket = await SocketTurns.open(service, scene);
  if (socket instanceof Problem) return socket;
  return { drive: (chunks) => socket.drive(chunks, sent), leave: () => socket.close() };
}
