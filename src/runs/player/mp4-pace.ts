/** The frame duration of an MP4 video. Arrow keys move by one frame, and browsers do not expose its duration. */
import { boxes, findIndex, kindOf, type ReadRange, ticksPerSecond, viewOf } from "../../std/mp4-boxes.ts";

/** The boxes that are read lie before the long tables of the index. */
const INDEX_BYTES_MAX = 64 * 1024;

/** The first duration of the table of frames, in seconds. Rejects if the index is cut off. */
export async function frameSecondsOf(size: number, read: ReadRange): Promise<number | undefined> {
  const found = await findIndex(size, read);
  if (typeof found === "string") return undefined;
  const index = viewOf(await read(found.from, Math.min(found.to, found.from + INDEX_BYTES_MAX)));
  const track = boxes(index, "trak").find((one) => kindOf(one) === "vide");
  const [header] = track ? boxes(track, "mdia", "mdhd") : [];
  const [times] = track ? boxes(track, "mdia", "minf", "stbl", "stts") : [];
  if (header === undefined || times === undefined) return undefined;
  const seconds = times.getUint32(12) / ticksPerSecond(header);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}
