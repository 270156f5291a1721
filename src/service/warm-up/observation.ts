/** A right observation for any model, with the frames of the documents' example. */
import type { Manifest } from "../../bundle/manifest.ts";
import { EXAMPLE, EXAMPLE_FRAMES, EXAMPLE_INSTRUCTION } from "../../robot/docs/example.ts";

/** Of a frame as cameras send them: the body is then read as theirs is. */
const FRAME_BYTES = 57_000;

/** Position and rotation6d of an arm. */
const POSE = [0, 0, 0, 1, 0, 0, 0, 1, 0];
const CARTESIAN = { joint_position: [], gripper_position: [0, 0], cartesian_position: [...POSE, ...POSE] };

/** The body for the step of a session, each of one model. */
export function observationsOf({ id, cameras, frames, state }: Manifest): (step: number) => string {
  const urls = EXAMPLE_FRAMES.map(asLargeAsACamera);
  return (step) => {
    const count = cameras.length * (step === 0 ? frames.first : frames.later);
    const images = Array.from({ length: count }, (_, at) => ({
      type: "image_url",
      image_url: { url: urls[at % urls.length] },
    }));
    return JSON.stringify({
      session_id: "warm-up",
      model: id,
      messages: [{ role: "user", content: [{ type: "text", text: EXAMPLE_INSTRUCTION }, ...images] }],
      robot_state: state.kind === "joint" ? EXAMPLE.robot_state : CARTESIAN,
    });
  };
}

/** A JPEG as a data URL with a comment behind its first marker, which decoders skip. */
function asLargeAsACamera(url: string): string {
  const at = url.indexOf(",") + 1;
  const jpeg = Uint8Array.fromBase64(url.slice(at));
  const [start, rest] = [jpeg.subarray(0, 2), jpeg.subarray(2)];
  // Of the comment with the two bytes of its length.
  const length = Math.max(2, FRAME_BYTES - jpeg.length - 2);
  const comment = new Uint8Array(2 + length);
  comment.set([0xff, 0xfe, length >> 8, length & 0xff]);
  return url.slice(0, at) + Buffer.concat([start, comment, rest]).toBase64();
}
