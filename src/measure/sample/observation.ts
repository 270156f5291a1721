/** The observation that `tendon sample` writes and every measurement sends: that of the example in the documents. */
import { requestBody } from "../../client/request.ts";
import { EXAMPLE, EXAMPLE_INSTRUCTION } from "../../robot/docs/example.ts";
import { Problem } from "../../std/problem.ts";
import { plainFrame } from "./drawing.ts";

/** Its cameras are the views of the drawn scene. */
export const SAMPLE_MODEL = EXAMPLE.model;
export const SAMPLE_INSTRUCTION = EXAMPLE_INSTRUCTION;
/** A resting pose: left joints 1-6, right joints 1-6 in radians; grippers half open. */
export const SAMPLE_STATE = EXAMPLE.robot_state;

/** The cheapest paid request: a whole observation with frames that cost next to nothing to decode, without a session. */
export async function smallRequest(): Promise<object | Problem> {
  const frame = await plainFrame(32);
  if (frame instanceof Problem) return frame;
  const frames = [frame, frame, frame];
  return requestBody({ model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, frames, state: SAMPLE_STATE });
}
