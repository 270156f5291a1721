/** `tendon act --socket`: the same observation and the same chunk, over a socket of `/v1/responses`. */
import type { ActionChunk } from "../../client/chunk.ts";
import { frameMessage } from "../../client/episode-messages.ts";
import { EpisodeSocket } from "../../client/episode-socket.ts";
import type { Service } from "../../client/http.ts";
import { Problem } from "../../error/problem.ts";

interface SocketRequest {
  readonly model: string;
  readonly instruction: string;
  /** JPEG files of each camera, oldest first, cameras in the model's order. */
  readonly cameras: readonly (readonly Uint8Array[])[];
  readonly state: object;
  readonly sessionId: string | undefined;
  readonly seed: number | undefined;
}

export async function actOverSocket(service: Service, request: SocketRequest): Promise<ActionChunk | Problem> {
  const socket = await EpisodeSocket.connect(service);
  if (socket instanceof Problem) return socket;
  const chunk = await oneChunk(socket, request);
  // A session that was named is there to be continued, as over HTTP; one that the service named is not.
  if (request.sessionId === undefined) await socket.close();
  else await socket.leave();
  return chunk;
}

async function oneChunk(socket: EpisodeSocket, request: SocketRequest): Promise<ActionChunk | Problem> {
  const { model, instruction, sessionId, seed } = request;
  const opened = await socket.open({ model, instruction, sessionId, seed, format: "json" });
  if (opened instanceof Problem) return opened;
  for (const [camera, jpegs] of request.cameras.entries()) {
    for (const jpeg of jpegs) socket.frame(frameMessage(camera, jpeg));
  }
  return await socket.observe({ robot_state: request.state });
}
