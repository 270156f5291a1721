/** One robot on a socket that sends again as soon as it has its chunk: its frames some milliseconds before an observation, or with it. */
import { frameMessage } from "../src/client/episode-messages.ts";
import { EpisodeSocket } from "../src/client/episode-socket.ts";
import type { Service } from "../src/client/http.ts";
import { CAPTURE_AHEAD_MS } from "../src/measure/episode/loop-robot.ts";
import { repeatable } from "../src/measure/episode/robot-sockets.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../src/measure/sample/observation.ts";
import { systemClock } from "../src/std/clock.ts";
import { Problem } from "../src/std/problem.ts";

/** How cameras send, each with its name in tables. */
export const FRAMES_SENT = {
  early: `socket, frames ${CAPTURE_AHEAD_MS} ms before`,
  together: "socket, frames right before",
} as const;
export type FramesSent = keyof typeof FRAMES_SENT;

export class SocketTurns {
  private sent = 0;

  private constructor(
    private readonly socket: EpisodeSocket,
    /** The frames of every observation. */
    private readonly messages: readonly Uint8Array[],
  ) {}

  static async open(service: Service, frames: readonly Uint8Array[]): Promise<SocketTurns | Problem> {
    const socket = await EpisodeSocket.connect(service);
    if (socket instanceof Problem) return socket;
    const opened = await socket.open({ model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, format: "json" });
    if (opened instanceof Problem) return opened;
    const messages = frames.map((jpeg, camera) => frameMessage(camera, jpeg));
    return new SocketTurns(socket, messages);
  }

  /** Milliseconds from each observation to its chunk, by the client's clock. */
  async drive(chunks: number, sent: FramesSent): Promise<number[] | Problem> {
    const times: number[] = [];
    for (let n = 0; n < chunks; n += 1) {
      for (const message of this.messages) this.socket.frame(message);
      if (sent === "early") await Bun.sleep(CAPTURE_AHEAD_MS);
      const beforeMs = systemClock.monotonicMs();
      const chunk = await this.socket.observe({ robot_state: SAMPLE_STATE, ...repeatable(this.sent) });
      if (chunk instanceof Problem) return chunk;
      this.sent += 1;
      times.push(systemClock.monotonicMs() - beforeMs);
    }
    return times;
  }

  close(): Promise<Problem | undefined> {
    return this.socket.close();
  }
}
