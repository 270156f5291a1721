/** When the frames of an MP4 file are shown: its tables of times (`stts`), of offsets (`ctts`) and of edits (`elst`). */
import { boxes, ticksPerSecond } from "../../../std/mp4-boxes.ts";

/** A frame may be so far, in seconds, from where a constant rate has it: LeRobot refuses to read one that is further. */
const JITTER_SECONDS_MAX = 1e-4;
/** A table of more frames, which are days of video, is damaged. */
const FRAMES_MAX = 2 ** 24;
const NORMAL_RATE = 0x10000;

/** The number of frames and their rate, or why rows cannot stand beside them. */
export function timesOf(index: DataView, track: DataView): { fps: number; frames: number } | string {
  const [header] = boxes(track, "mdia", "mdhd");
  const [movie] = boxes(index, "mvhd");
  const [tables] = boxes(track, "mdia", "minf", "stbl");
  const [times] = tables ? boxes(tables, "stts") : [];
  if (!header || !movie || !tables || !times) return "its index has no table of frames";
  const shown = shownTicks(times, boxes(tables, "ctts")[0]);
  if (typeof shown === "string") return shown;
  const second = ticksPerSecond(header);
  const rate = rateOf(shown, second);
  if (typeof rate === "string") return rate;
  const ends = { first: shown.ticks[0] ?? 0, last: shown.ticks.at(-1) ?? 0 };
  const start = startOf(boxes(track, "edts", "elst")[0], ends, { second, movieSecond: ticksPerSecond(movie) });
  if (start === undefined)
    return "its edit list shows only some of its frames; write it anew with: ffmpeg -i IN OUT.mp4";
  if (Math.abs(start) <= JITTER_SECONDS_MAX) return rate;
  return `its first frame is shown at ${start.toFixed(3)} s, and rows begin at 0; write it anew with: ffmpeg -copyts -i IN -vf fps=${rate.fps}:start_time=0 OUT.mp4`;
}

/** Runs of (count, ticks). The sign that version 1 of `ctts` gives to offsets is given by encoders in version 0, too. */
function* runsOf(table: DataView): Generator<readonly [count: number, ticks: number]> {
  for (let run = 0; run < table.getUint32(4); run += 1)
    yield [table.getUint32(8 + run * 8), table.getInt32(12 + run * 8)];
}

/** The ticks of all frames in the order in which they are shown, before the edit list, and the length of the last decoded one. */
function shownTicks(times: DataView, offsets: DataView | undefined): { ticks: Float64Array; length: number } | string {
  const frames = [...runsOf(times)].reduce((sum, [count]) => sum + count, 0);
  if (frames === 0) return "it is fragmented, or empty; write it anew with: ffmpeg -i IN -c copy OUT.mp4";
  if (frames > FRAMES_MAX) return `its index has ${frames} frames, at most ${FRAMES_MAX} are read`;
  const ticks = new Float64Array(frames);
  let [frame, at, length] = [0, 0, 0];
  for (const [count, each] of runsOf(times)) {
    length = each;
    for (const end = frame + count; frame < end; frame += 1, at += each) ticks[frame] = at;
  }
  frame = 0;
  for (const [count, offset] of offsets ? runsOf(offsets) : []) {
    for (const end = Math.min(frame + count, frames); frame < end; frame += 1)
      ticks[frame] = (ticks[frame] ?? 0) + offset;
  }
  return { ticks: ticks.sort(), length };
}

function rateOf({ ticks, length }: { ticks: Float64Array; length: number }, second: number) {
  const [frames, first] = [ticks.length, ticks[0] ?? 0];
  const fps = frames === 1 ? second / length : ((frames - 1) * second) / ((ticks.at(-1) ?? 0) - first);
  if (!Number.isFinite(fps) || fps <= 0) return "its frames have no length of time";
  const isOff = (tick: number, frame: number) => Math.abs((tick - first) / second - frame / fps) > JITTER_SECONDS_MAX;
  if (ticks.some(isOff))
    return "its frames do not come at a constant rate; write it anew with: ffmpeg -i IN -vf fps=30 OUT.mp4";
  return { fps, frames };
}

/** The second at which the first frame is shown; undefined if not every frame is, once and at its own speed. */
function startOf(
  list: DataView | undefined,
  { first, last }: { first: number; last: number },
  { second, movieSecond }: { second: number; movieSecond: number },
): number | undefined {
  const count = list?.getUint32(4) ?? 0;
  if (!list || count === 0) return first / second;
  const isLong = list.getUint8(0) === 1;
  let delay = 0;
  for (let at = 8, edit = 1; ; at += isLong ? 20 : 12, edit += 1) {
    const length = (isLong ? Number(list.getBigUint64(at)) : list.getUint32(at)) / movieSecond;
    const from = isLong ? Number(list.getBigInt64(at + 8)) : list.getInt32(at + 4);
    // An edit without media only delays what follows it.
    if (from === -1 && edit < count) delay += length;
    else {
      const isWhole = length === 0 || length * second > last - from;
      const isPlain = edit === count && from >= 0 && list.getUint32(at + (isLong ? 16 : 8)) === NORMAL_RATE;
      return isWhole && isPlain ? delay + (first - from) / second : undefined;
    }
  }
}
