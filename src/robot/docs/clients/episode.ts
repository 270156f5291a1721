/** One episode on one WebSocket, taken up again where it broke off; prints every chunk as a line of JSON.
 * Key in TENDON_API_KEY; bun episode.ts BASE_URL MODEL CHUNKS STATE.json FRAME.jpg FRAME.jpg FRAME.jpg [--yes-random] */
import { argv, env, exit, stderr, stdout } from "node:process";

const [base = "", model, chunks, stateFile = "", ...rest] = argv.slice(2);
const frameFiles = rest.filter((word) => word !== "--yes-random");
const state = await Bun.file(stateFile).json();
const frames = await Promise.all(frameFiles.map((file) => Bun.file(file).bytes()));
const headers = { authorization: `Bearer ${env.TENDON_API_KEY}` };
const session = `episode-${crypto.randomUUID()}`;
const passing = /_(unavailable|outcome_unknown|failure|busy|replica_free|protocol_error)$|^internal_error$/;
const random = "random weights, or no model: never move a real arm with these rows; --yes-random goes on";
let [step, perCamera, pauseMs] = [0, 1, 0];

function failed(why: string, passes: boolean): void {
  stderr.write(`${why}\n`);
  if (!passes) exit(1);
}

while (step < Number(chunks)) {
  await Bun.sleep(pauseMs);
  const socket = new WebSocket(`${base.replace("http", "ws")}/v1/responses`, { headers });
  const say = (message: object) => socket.send(JSON.stringify(message));
  socket.onopen = () => say({ type: "session.open", model, instruction: "fold the towel", session_id: session });
  socket.onmessage = ({ data }) => {
    const { type, ...said } = JSON.parse(data);
    if (type === "error") return failed(`${said.code}: ${said.message}`, said.closing && passing.test(said.code));
    if (type === "session.closed") return;
    if (said.bundle === "reference") failed(random, rest.length > frameFiles.length);
    if (said.step === step) perCamera = said.next_frames_per_camera;
    if (type === "action_chunk") [step, pauseMs] = [step + 1, 0];
    if (type === "action_chunk") stdout.write(`${data}\n`);
    if (step === Number(chunks)) return say({ type: "session.close" });
    for (const [camera, jpeg] of frames.entries()) // A robot sends all since the last time, oldest first.
      for (let n = 0; n < perCamera; n += 1) socket.send(Buffer.concat([Uint8Array.of(camera), jpeg]));
    say({ type: "observation", robot_state: state, observation_id: `${step}`, expected_step: step });
  };
  // Only this text has the handshake's status. After 4xx, such as 401, another try would end the same way.
  socket.onerror = ({ message }) => failed(message, !/ status code: 4\d\d$/.test(message));
  await new Promise((closed) => socket.addEventListener("close", closed));
  pauseMs = 2 * pauseMs || 1_000;
  if (pauseMs > 16_000) failed("the service does not come back", false);
}
