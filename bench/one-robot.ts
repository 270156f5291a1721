/** One robot that sends again as soon as it has its chunk: over HTTP, or on a socket, its frames before an observation or with it. */
import { frameMessage } from "../src/client/episode-messages.ts";
import { EpisodeSocket } from "../src/client/episode-socket.ts";
import type { Service } from "../src/client/http.ts";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { CAPTURE_AHEAD_MS } from "../src/measure/episode/loop-robot.ts";
import { repeatable } from "../src/measure/episode/robot-sockets.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../src/measure/sample/observation.ts";
import type { Scenes } from "../src/measure/sample/scenes.ts";
import { systemClock } from "../src/std/clock.ts";
import { Problem } from "../src/std/problem.ts";

export interface Robot {
  /** Milliseconds from each observation to its chunk, by the client's clock. */
  drive(chunks: number): Promise<readonly number[] | Problem>;
  leave(): Promise<unknown>;
}

/** How cameras send, each with its name in tables. */
export const FRAMES_SENT = {
  early: `socket, frames ${CAPTURE_AHEAD_MS} ms before`,
  together: "socket, frames right before",
} as const;
export type FramesSent = keyof typeof FRAMES_SENT;

/** Each drive is a new session. A chunk that is not measured opens it. */
export function overHttp(service: Service, scenes: Scenes): Robot {
  let drives = 0;
  return {
    async drive(chunks) {
      drives += 1;
      const load = {
        service,
        robots: 1,
        chunks,
        warmup: 1,
        scenes,
        sessionPrefix: `drive-${drives}`,
        repeatable: true,
      };
      const driven = await driveChunks(load);
      return driven instanceof Problem ? driven : driven.ms.client;
    },
    leave: async () => undefined,
  };
}

/** Every observation has the same frames. */
export async function onSocket(
  service: Service,
  frames: readonly Uint8Array[],
  sent: FramesSent,
): Promise<Robot | Problem> {
  const socket = await EpisodeSocket.connect(service);
  if (socket instanceof Problem) return socket;
  const opened = await socket.open({ model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, format: "json" });
  if (opened instanceof Problem) return opened;
  const messages = frames.map((jpeg, camera) => frameMessage(camera, jpeg));
  let observed = 0;
  const observe = async () => {
    for (const message of messages) socket.frame(message);
    if (sent === "early") await Bun.sleep(CAPTURE_AHEAD_MS);
    const beforeMs = systemClock.monotonicMs();
    const chunk = await socket.observe({ robot_state: SAMPLE_STATE, ...repeatable(observed) });
    observed += 1;
    return chunk instanceof Problem ? chunk : systemClock.monotonicMs() - beforeMs;
  };
  return {
    async drive(chunks) {
      const times: number[] = [];
      for (let n = 0; n < chunks; n += 1) {
        const ms = await observe();
        if (ms instanceof Problem) return ms;
        times.push(ms);
      }
      return times;
    },
    leave: () => socket.close(),
  };
}
