/** The cheapest paid request: a whole observation with frames that cost next to nothing to decode, without a session. */
import sharp from "sharp";
import { requestBody } from "../src/client/request.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../src/measure/sample/observation.ts";

const PICTURE = { width: 32, height: 32, channels: 3, background: { r: 90, g: 120, b: 150 } } as const;

export async function smallRequest(): Promise<object> {
  const frame = await sharp({ create: PICTURE }).jpeg().toBuffer();
  const frames = [frame, frame, frame];
  return requestBody({ model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, frames, state: SAMPLE_STATE });
}
