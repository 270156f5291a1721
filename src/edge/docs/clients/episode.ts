/** One episode on one WebSocket, taken up again where it broke off; prints every chunk as a line of JSON.
 * Key in TENDON_API_KEY; bun episode.ts BASE_URL MODEL CHUNKS STATE.json FRAME.jpg FRAME.jpg FRAME.jpg */
import { readFile } from "node:fs/promises";
import { argv, env, exit, stderr, stdout } from "node:process";

const [base = "", model, chunks, stateFile = "", ...frameFiles] = argv.slice(2);
const state = JSON.parse(await readFile(stateFile, "utf8"));
const frames = await Promise.all(frameFiles.map((file) => readFile(file)));
const headers = { authorization: `Bearer ${env.TENDON_API_KEY}` };
const session = `episode-${crypto.randomUUID()}`;
const passing = /_unavailable$|^(model_failure|no_replica_free|session_busy|observation_outcome_unknown)$/;
const pausesMs = [1_000, 2_000, 4_000, 8_000, 16_000];
let [step, perCamera] = [0, 1];

function connect(): void {
  const socket = new WebSocket(`${base.replace("http", "ws")}/v1/responses`, { headers });
  const say = (message: object) => socket.send(JSON.stringify(message));
  const goOn = () => {
    if (step === Number(chunks)) return say({ type: "session.close" });
    // A robot sends all since the last time, oldest first.
    for (const [camera, jpeg] of frames.entries())
      for (let n = 0; n < perCamera; n += 1) socket.send(Buffer.concat([Uint8Array.of(camera), jpeg]));
    say({ type: "observation", robot_state: state, observation_id: `${step}`, expected_step: step });
  };
  socket.onopen = () => say({ type: "session.open", model, instruction: "fold the towel", session_id: session });
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "error") {
      stderr.write(`${message.code}: ${message.message}\n`);
      if (!message.closing || !passing.test(message.code)) exit(1); // Sent again, it would be refused again.
    } else if (message.type !== "session.closed") {
      if (message.type === "action_chunk") stdout.write(`${data}\n`);
      if (message.step === step) perCamera = message.next_frames_per_camera;
      if (message.type === "action_chunk") step += 1;
      goOn();
    }
  };
  socket.onclose = ({ code }) => (code === 1000 ? undefined : setTimeout(connect, pausesMs.shift() ?? exit(1)));
}
connect();
