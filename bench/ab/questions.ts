/** What is asked of both commits: how one robot is driven, and for how long. */
import type { Service } from "../../src/client/http.ts";
import type { Scenes } from "../../src/measure/sample/scenes.ts";
import type { Problem } from "../../src/std/problem.ts";
import { FRAMES_SENT, type FramesSent, onSocket, overHttp, type Robot } from "../one-robot.ts";
import type { Size } from "../proof.ts";

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
    connect: (service: Service, [scene = []]: Scenes) => onSocket(service, scene, sent),
  })),
  {
    name: "HTTP, molmoact2 on the CPU",
    device: "cpu",
    chunks: { small: 2, full: 15 },
    connect: async (service, scenes) => overHttp(service, scenes),
  },
];
