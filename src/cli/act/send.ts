/** One observation of `tendon act` to a service, over HTTP or over a socket of `/v1/responses`: the chunk is the same. */
import { type ActionChunk, chunkOf } from "../../client/chunk.ts";
import { CHAT_ROUTE } from "../../client/description.ts";
import { frameMessage } from "../../client/episode-messages.ts";
import { EpisodeSocket } from "../../client/episode-socket.ts";
import { post, type Service } from "../../client/http.ts";
import { type RobotRequest, requestBody } from "../../client/request.ts";
import { Problem } from "../../std/problem.ts";

export interface Observation extends Omit<RobotRequest, "frames"> {
  /** JPEG files of each camera, oldest first, cameras in the model's order. */
  readonly cameras: readonly (readonly Uint8Array[])[];
}

export async function sendOverHttp(service: Service, observation: Observation): Promise<ActionChunk | Problem> {
  const body = requestBody({ ...observation, frames: observation.cameras.flat() });
  const answer = await post(service, CHAT_ROUTE, JSON.stringify(body));
  if (answer instanceof Problem) return answer;
  const { url } = service;
  return (
    chunkOf(answer.body) ??
    new Problem(`the service at ${url} answered without an action chunk; is '${observation.model}' a robot model?`)
  );
}

export async function sendOverSocket(service: Service, observation: Observation): Promise<ActionChunk | Problem> {
  const socket = await EpisodeSocket.connect(service);
  if (socket instanceof Problem) return socket;
  const chunk = await oneChunk(socket, observation);
  // A session that the user named may be continued, as over HTTP; one that the service named is ended.
  if (observation.sessionId === undefined) await socket.close();
  else await socket.leave();
  return chunk;
}

async function oneChunk(socket: EpisodeSocket, observation: Observation): Promise<ActionChunk | Problem> {
  const opened = await socket.open({ ...observation, format: "json" });
  if (opened instanceof Problem) return opened;
  for (const [camera, jpegs] of observation.cameras.entries()) {
    for (const jpeg of jpegs) socket.frame(frameMessage(camera, jpeg));
  }
  const { state, deadlineMs } = observation;
  return await socket.observe({
    robot_state: state,
    ...(deadlineMs === undefined ? {} : { deadline_ms: deadlineMs }),
  });
}
