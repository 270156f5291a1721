/** Messages of a socket, in any order and form: a whole episode over the fake engine. */
import { resolve } from "node:path";
import { settle } from "../../robot/http/outcome.ts";
import { type Heard, held, money, NOTHING, Peer } from "../../robot/socket/peer.ts";
import { STATEFUL, type Stage, stage, VECTOR, vectorState } from "../../robot/stage.ts";
import { must, type Target } from "../target.ts";

const SRC = resolve(import.meta.dir, "../../../src");
const OPEN = '{"type":"session.open","model":"vendorB/molmoact2:yam","instruction":"fold"}';
const STATE = '{"joint_position":[0,0,0,0,0,0,0,0,0,0,0,0],"gripper_position":[0,1]}';
const LOOK = `{"type":"observation","robot_state":${STATE}}`;
const VECTOR_LOOK = JSON.stringify({ type: "observation", robot_state: vectorState });
const FRAMES = [0, 1, 2].map((camera) => `\u0000${String.fromCharCode(camera)}ÿØÿx`);

let at: Promise<Stage> | undefined;

/** The connection is gone. */
const DROPPED = "\u0001";

/** Messages are divided by line breaks; one that begins with a zero byte is binary, and after an empty one there is a pause. */
export const socket: Target = {
  name: "socket-messages",
  guides: ["messages", "frames", "episode", "queues", "half-messages", "observe"].map(
    (file) => `${SRC}/robot/socket/${file}.ts`,
  ),
  seeds: [
    Buffer.from([OPEN, "", ...FRAMES, LOOK, "", ...FRAMES, LOOK, '{"type":"session.close"}'].join("\n"), "latin1"),
    Buffer.from(
      [OPEN.replace("vendorB/molmoact2", STATEFUL.replace(":yam", "")), ...FRAMES, LOOK].join("\n"),
      "latin1",
    ),
    Buffer.from(
      [OPEN.replace("vendorB/molmoact2:yam", VECTOR), ...FRAMES.slice(0, 2), VECTOR_LOOK].join("\n"),
      "latin1",
    ),
    Buffer.from(["{", '{"type":1}', OPEN, OPEN, "\u0000\u0009ÿØÿ", LOOK].join("\n"), "latin1"),
  ],
  words: [
    OPEN,
    LOOK,
    VECTOR_LOOK,
    ...FRAMES,
    "\n",
    "\n\n",
    `\n${DROPPED}\n`,
    '"observation_id":"o",',
    '"expected_step":1,',
    '"session_id":"s",',
    '"actions_format":"f32",',
    '"seed":',
    '"deadline_ms":1,',
    "null",
    "{}",
  ],
  async run(input) {
    at ??= stage();
    const here = await at;
    const one = new Peer(here);
    const logged = here.logLines.length;
    let observations = 0;
    for (const line of Buffer.from(input).toString("latin1").split("\n")) {
      if (line === "") await settle();
      else if (line === DROPPED) one.episode.dropped();
      else if (line.startsWith("\u0000")) one.episode.receive(Buffer.from(line.slice(1), "latin1"));
      else one.episode.receive(line);
      if (/"type"\s*:\s*"observation"/.test(line)) observations += 1;
    }
    await settle();
    const heard = one.heard.filter((message): message is Heard => typeof message !== "number");
    const chunks = heard.filter(({ type }) => type === "action_chunk").length;
    must(chunks <= observations, "a chunk for an observation, at most one");
    must(heard.filter(({ closing }) => closing).length <= 1, "one error closes");
    must((one.closed !== undefined) === one.ended, "what is closed has ended");
    one.episode.dropped();
    await settle();
    must(JSON.stringify(held(here)) === JSON.stringify(NOTHING), `held: ${JSON.stringify(held(here))}`);
    const { held: unsettled } = await money(here);
    must(unsettled === 0n, `money that is held: ${unsettled}`);
    const fault = here.logLines.slice(logged).find((text) => text.includes("fault"));
    must(fault === undefined, `a fault of our own: ${fault}`);
    // What the sessions of this input hold must not be in the way of the next one.
    here.clock.advance(3_700_000);
    here.service.robot.sessions.sweep();
    return [...new Set(heard.map(({ type, code }) => `${type} ${code ?? ""}`))].toSorted().join("; ");
  },
};
