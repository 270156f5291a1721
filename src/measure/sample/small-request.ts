/** The cheapest paid request. */
import { requestBody } from "../../client/request.ts";
import { Problem } from "../../std/problem.ts";
import { plainFrame } from "./drawing.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "./observation.ts";

const EDGE_PX = 32;
const CAMERAS = 3;

/** One whole observation with frames that cost next to nothing to decode, without a session. */
export async function smallRequest(): Promise<object | Problem> {
  const frame = await plainFrame(EDGE_PX);
  if (frame instanceof Problem) return frame;
  const frames = Array.from({ length: CAMERAS }, () => frame);
  return requestBody({ model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, frames, state: SAMPLE_STATE });
}
