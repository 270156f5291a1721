/** A robot whose link is gone for a moment goes on with its episode on a new connection; two live robots do not share one. */
import { expect, test } from "bun:test";
import { frameMessage } from "../../src/client/episode-messages.ts";
import { EpisodeSocket } from "../../src/client/episode-socket.ts";
import type { Service } from "../../src/client/http.ts";
import { firstLine } from "../../src/measure/child.ts";
import { Problem } from "../../src/std/problem.ts";
import { Place } from "./program.ts";
import { footage, framesAt, observe, ROBOTS } from "./robot.ts";

const ROBOT = ROBOTS.find(({ model }) => model === "vendorA/dreamzero-astra:yam");
if (ROBOT === undefined) throw new Error("no such robot");
const OPENING = { model: ROBOT.model, instruction: "fold the towel", sessionId: "e", format: "json" } as const;

/** A robot in another process: opens the session, gets one chunk, and tells what it hears. */
const CLIENT = `
const [url, key, model, state, ...frames] = process.argv.slice(1);
const socket = new WebSocket(url.replace("http", "ws") + "/v1/responses", { headers: { authorization: "Bearer " + key } });
const say = (message) => socket.send(JSON.stringify(message));
socket.onopen = () => say({ type: "session.open", model, instruction: "fold the towel", session_id: "e" });
socket.onmessage = async ({ data }) => {
  const said = JSON.parse(data);
  if (said.type === "action_chunk") process.stdout.write("chunk " + said.step + "\\n");
  if (said.type === "error") process.stderr.write(JSON.stringify(said) + "\\n");
  if (said.type !== "session.opened") return;
  for (const [camera, file] of frames.entries())
    socket.send(Buffer.concat([Uint8Array.of(camera), await Bun.file(file).bytes()]));
  say({ type: "observation", robot_state: JSON.parse(state), observation_id: "0" });
};
socket.onclose = ({ code }) => { process.stderr.write("closed " + code + "\\n"); process.exit(0); };
`;

async function opened(service: Service) {
  const socket = await EpisodeSocket.connect(service);
  if (socket instanceof Problem) throw new Error(socket.message);
  return { socket, answer: await socket.open(OPENING) };
}

test("a session whose client is stopped is taken over by the same key, step and memory intact; whose client runs, is not", async () => {
  const { cameras } = await footage(5);
  await using place = await Place.make();
  const server = await place.serve();
  const service = { url: server.ready.url, apiKey: server.ready.api_key };
  const { robot_state } = observe(ROBOT, 0, []) as { robot_state: object };
  const files = await Promise.all(
    framesAt(ROBOT, 0, cameras).map(async (jpeg, index) => {
      await Bun.write(place.path(`${index}.jpg`), jpeg);
      return place.path(`${index}.jpg`);
    }),
  );
  const child = Bun.spawn(
    [process.execPath, "-e", CLIENT, service.url, service.apiKey, ROBOT.model, JSON.stringify(robot_state), ...files],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  expect(await firstLine(child.stdout)).toBe("chunk 0");

  // Both are there.
  const refused = await opened(service);
  expect(refused.answer).toMatchObject({ message: expect.stringContaining("session_busy") });
  await refused.socket.leave();

  // Its connection stands, but nobody is behind it.
  child.kill("SIGSTOP");
  const { socket, answer } = await opened(service);
  expect(answer).toMatchObject({ step: 1, next_frames_per_camera: ROBOT.later });
  for (const [index, jpeg] of framesAt(ROBOT, 1, cameras).entries())
    socket.frame(frameMessage(Math.floor(index / ROBOT.later), jpeg));
  const chunk = await socket.observe({ robot_state, observation_id: "1", expected_step: 1 });
  expect(chunk).toMatchObject({ step: 1 });

  child.kill("SIGCONT");
  const said = await new Response(child.stderr).text();
  expect([await child.exited, said]).toEqual([0, expect.stringContaining("taken this session over")]);
  expect(await socket.close()).toBeUndefined();
  expect(await server.stop()).toBe(0);
}, 60_000);
