/** The time from frame to frame of a video, out of its boxes. */
import { expect, test } from "bun:test";
import { frameSecondsOf } from "../../../src/runs/player/mp4-pace.ts";

function box(type: string, ...content: readonly Uint8Array[]): Uint8Array {
  const size = content.reduce((sum, { length }) => sum + length, 8);
  const head = new Uint8Array(8);
  new DataView(head.buffer).setUint32(0, size);
  head.set(new TextEncoder().encode(type), 4);
  return Uint8Array.from([head, ...content].flatMap((part) => [...part]));
}

function words(...values: readonly number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * 4));
  for (const [at, value] of values.entries()) view.setUint32(at * 4, value);
  return new Uint8Array(view.buffer);
}

const text = (four: string) => new TextEncoder().encode(four);

function track(kind: string, clock: Uint8Array, frame: number): Uint8Array {
  const hdlr = box("hdlr", words(0, 0), text(kind), words(0));
  const stts = box("stts", words(0, 1, 60, frame));
  return box("trak", box("tkhd", words(0)), box("mdia", box("mdhd", clock), hdlr, box("minf", box("stbl", stts))));
}

const short = (perSecond: number) => words(0, 0, 0, perSecond, 0);
const wide = (perSecond: number) => words(0x01000000, 0, 0, 0, 0, perSecond, 0, 0);

async function paceOf(file: Uint8Array): Promise<number | undefined> {
  return await frameSecondsOf(file.length, async (start, end) => file.slice(start, end)).catch(() => undefined);
}

function file(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

test("is the first of the video track's, in that track's clock, wherever the index stands", async () => {
  const sound = track("soun", short(48_000), 1024);
  const moov = box("moov", box("mvhd", words(0)), sound, track("vide", short(15_360), 1024));
  const media = box("mdat", new Uint8Array(5000));
  expect(await paceOf(file(box("ftyp", text("isom")), moov, media))).toBe(1 / 15);
  expect(await paceOf(file(box("ftyp", text("isom")), media, moov))).toBe(1 / 15);
  expect(await paceOf(file(box("moov", track("vide", wide(30_000), 1001))))).toBe(1001 / 30_000);
});

test("is unknown of what is no such file, however it is cut or lies about its sizes", async () => {
  const moov = box("moov", track("vide", short(15_360), 1024));
  for (const cut of [0, 1, 8, 17, 40, moov.length - 1]) expect(await paceOf(moov.slice(0, cut))).toBeUndefined();
  expect(await paceOf(new TextEncoder().encode("no video at all, but a text of some length"))).toBeUndefined();
  expect(await paceOf(new Uint8Array(64))).toBeUndefined();
  expect(await paceOf(file(box("moov", track("vide", short(0), 1024))))).toBeUndefined();
});
