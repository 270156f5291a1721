import { expect, test } from "bun:test";
import { jpegFacts } from "../../../../src/cli/runs-export/video/jpeg-facts.ts";
import { mp4Facts } from "../../../../src/cli/runs-export/video/mp4-read.ts";
import { writeMotionJpeg } from "../../../../src/cli/runs-export/video/mp4-write.ts";
import { Problem } from "../../../../src/std/problem.ts";
import { Folder, JPEG } from "../../../client/episode-log/sample-run.ts";

const FACTS = { width: 64, height: 48, pixels: "yuvj420p", channels: 3 } as const;

async function* repeated(count: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield JPEG;
}

const write = (path: string, count: number, fps: number) =>
  writeMotionJpeg({ path, jpegs: repeated(count), fps, facts: FACTS });

function wordsOf(values: readonly number[]): Buffer {
  const words = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) words.writeInt32BE(value | 0, 4 * index);
  return words;
}

/** The file with a further table in a box of its index, behind the boxes that lead to it. */
async function withTable(path: string, parents: readonly string[], type: string, words: readonly number[]) {
  const bytes = Buffer.from(await Bun.file(path).bytes());
  const table = Buffer.concat([wordsOf([8 + 4 * words.length]), Buffer.from(type), wordsOf(words)]);
  const at = bytes.indexOf(parents.at(-1) ?? "") + 4;
  const grown = Buffer.concat([bytes.subarray(0, at), table, bytes.subarray(at)]);
  for (const parent of parents) {
    const head = grown.indexOf(parent) - 4;
    grown.writeUInt32BE(grown.readUInt32BE(head) + table.length, head);
  }
  await Bun.write(path, grown);
}

/** The file with some words of its index replaced: the first `from` after the letters of a box, by `to`. */
async function edited(path: string, box: string, from: readonly number[], to: readonly number[]): Promise<void> {
  const bytes = Buffer.from(await Bun.file(path).bytes());
  const at = bytes.indexOf(wordsOf(from), bytes.indexOf(box));
  expect(at).toBeGreaterThan(0);
  wordsOf(to).copy(bytes, at);
  await Bun.write(path, bytes);
}

test("the facts of a motion JPEG video are those with which it was written", async () => {
  await using folder = await Folder.make();
  for (const [frames, fps] of [
    [1, 30],
    [90, 30],
    [3, 1.428],
    [2, 0.001],
  ] as const) {
    const path = folder.at(`${frames}-${fps}.mp4`);
    await write(path, frames, fps);
    const facts = await mp4Facts(path);
    if (facts instanceof Problem) throw new Error(facts.message);
    expect(facts).toMatchObject({ width: 64, height: 48, frames, codec: "mjpeg", hasAudio: false });
    expect(facts.fps).toBeCloseTo(fps, 9);
  }
});

test("a video whose frames do not come at a constant rate, or that has none, is refused", async () => {
  await using folder = await Folder.make();
  const refusal = async (name: string, box: string, from: readonly number[], to: readonly number[]) => {
    const path = folder.at(name);
    await write(path, 10, 30);
    await edited(path, box, from, to);
    const facts = await mp4Facts(path);
    return facts instanceof Problem ? facts.message : JSON.stringify(facts);
  };
  // Ten frames of 1000 ticks in the table of times; 30000 ticks are a second.
  expect(await refusal("empty.mp4", "stts", [1, 10, 1000], [0, 0, 0])).toContain("fragmented, or empty");
  expect(await refusal("still.mp4", "stts", [10, 1000], [10, 0])).toContain("no length of time");
  expect(await refusal("long.mp4", "stts", [1, 10, 1000], [9, 10, 1000])).toContain("its index is cut off");
  expect(await refusal("sound.mp4", "hdlr", [0x76696465], [0x736f756e])).toContain("0 video tracks");
});

test("frames may be a tenth of a millisecond from a constant rate, and no more", async () => {
  await using folder = await Folder.make();
  /** Two runs of five frames, of `first` and `second` ticks of 1/30000 s. */
  const facts = async (first: number, second: number) => {
    const path = folder.at(`${first}-${second}.mp4`);
    await write(path, 10, 30);
    const bytes = Buffer.from(await Bun.file(path).bytes());
    // The box grows by one run of eight bytes; so do the boxes around it.
    const at = bytes.indexOf("stts");
    const grown = Buffer.concat([bytes.subarray(0, at + 20), Buffer.alloc(8), bytes.subarray(at + 20)]);
    for (const box of ["moov", "trak", "mdia", "minf", "stbl", "stts"]) {
      const head = grown.indexOf(box) - 4;
      grown.writeUInt32BE(grown.readUInt32BE(head) + 8, head);
    }
    for (const [index, value] of [2, 5, first, 5, second].entries()) grown.writeUInt32BE(value, at + 8 + index * 4);
    await Bun.write(path, grown);
    return await mp4Facts(path);
  };
  expect(await facts(1000, 1000)).toMatchObject({ fps: 30, frames: 10 });
  expect(await facts(1000, 1001)).toMatchObject({ frames: 10 });
  expect(await facts(1000, 1100)).toMatchObject({ message: expect.stringContaining("constant rate") });
});

test("a video whose first frame is not shown at 0, or whose frames are not all shown, is refused", async () => {
  await using folder = await Folder.make();
  let count = 0;
  /** Ten frames of 1000 ticks, 30000 in a second; the clock of the edit list has the same ticks. */
  const read = async (offsets: readonly number[] | undefined, edits?: readonly (readonly number[])[], version = 0) => {
    count += 1;
    const path = folder.at(`${count}.mp4`);
    await write(path, 10, 30);
    const stbl = ["moov", "trak", "mdia", "minf", "stbl"];
    if (offsets) await withTable(path, stbl, "ctts", [0, offsets.length / 2, ...offsets]);
    const list = [version << 24, edits?.length ?? 0, ...(edits?.flat() ?? [])];
    // The list lies in a box of one child, whose head is its first two words.
    if (edits) await withTable(path, ["moov", "trak"], "edts", [8 + 4 * list.length, 0x656c7374, ...list]);
    const facts = await mp4Facts(path);
    return facts instanceof Problem ? facts.message : facts;
  };
  const whole = expect.objectContaining({ fps: 30, frames: 10 });
  const at = (seconds: number | string) => expect.stringContaining(`its first frame is shown at ${seconds} s`);
  const some = expect.stringContaining("its edit list");
  const once = 0x10000;
  // An encoder that looks ahead shows frames in another order than it decodes them.
  const ahead = [...[1, 2000, 1, 5000], ...[1, 2000, 1, 0, 1, 1000, 1, 5000, 1, 2000, 1, 0, 1, 1000, 1, 2000]];
  for (const [offsets, edits, found, version] of [
    [undefined, [[10_000, 0, once]], whole],
    [[10, 2000], undefined, at(0.067)],
    [[10, 2000], [[10_000, 2000, once]], whole],
    [[10, 2000], [[11_000, 1000, once]], at(0.033)],
    [[10, 2000], [[10_000, 1000, once]], some],
    [[10, -1000], undefined, at(-0.033)],
    [ahead, [[10_000, 2000, once]], whole],
    [ahead, undefined, at(0.067)],
    [[1, 0, 9, 500], undefined, expect.stringContaining("constant rate")],
    [
      undefined,
      [
        [15_000, -1, once],
        [10_000, 0, once],
      ],
      at("0.500"),
    ],
    [undefined, [[9_000, 1000, once]], at(-0.033)],
    [undefined, [[8_000, 0, once]], some],
    [
      undefined,
      [
        [10_000, 0, once],
        [10_000, 0, once],
      ],
      some,
    ],
    [undefined, [[10_000, 0, 2 * once]], some],
    [undefined, [], whole],
    [undefined, [[0, 10_000, 0, 0, once]], whole, 1],
    [
      undefined,
      [
        [0, 15_000, -1, -1, once],
        [0, 10_000, 0, 0, once],
      ],
      at("0.500"),
      1,
    ],
    [undefined, [[0, 10_000, 0]], expect.stringContaining("cut off"), 1],
  ] as const)
    expect([offsets, edits, await read(offsets, edits, version)]).toEqual([offsets, edits, found]);
});

test("a table of more frames than a video has is refused, and not read", async () => {
  await using folder = await Folder.make();
  const path = folder.at("long.mp4");
  await write(path, 10, 30);
  await edited(path, "stts", [1, 10, 1000], [1, 0xffffffff, 1000]);
  expect(await mp4Facts(path)).toMatchObject({ message: expect.stringContaining("4294967295 frames") });
});

test("a file that is cut off, or is no MP4 file, is refused", async () => {
  await using folder = await Folder.make();
  await write(folder.at("whole.mp4"), 3, 10);
  const whole = await Bun.file(folder.at("whole.mp4")).bytes();
  for (let length = 0; length < whole.length; length += 97) {
    await Bun.write(folder.at("cut.mp4"), whole.slice(0, length));
    expect(await mp4Facts(folder.at("cut.mp4"))).toBeInstanceOf(Problem);
  }
  await Bun.write(folder.at("cut.mp4"), JPEG);
  expect(await mp4Facts(folder.at("cut.mp4"))).toBeInstanceOf(Problem);
});

test("size and colours of a JPEG file come from its frame's header", async () => {
  const of = async (name: string) => jpegFacts(await Bun.file(`test/vectors/jpeg/${name}.jpg`).bytes());
  const { width, height } = (await of("420")) ?? {};
  expect(await of("420")).toEqual({
    width: expect.any(Number),
    height: expect.any(Number),
    pixels: "yuvj420p",
    channels: 3,
  });
  expect(await of("422")).toMatchObject({ pixels: "yuvj422p" });
  expect(await of("444-mid")).toMatchObject({ pixels: "yuvj444p" });
  expect(await of("gray")).toMatchObject({ pixels: "gray", channels: 1 });
  expect(await of("progressive-420")).toMatchObject({ pixels: "yuvj420p" });
  expect(await of("exif-rotated")).toMatchObject({ channels: 3 });
  expect([width, height].every((size) => (size ?? 0) > 0)).toBe(true);
  for (const name of [
    "bad-png",
    "bad-text",
    "bad-zero-both",
    "bad-cut-frame-header",
    "bad-two-bytes",
    "bad-cmyk-adobe",
  ])
    expect([name, await of(name)]).toEqual([name, undefined]);
});
