/** A fat binary as the CUDA compiler writes it: test/setup/gpu-kernels.test.ts reads a real one where the compiler is. */
import { expect, test } from "bun:test";
import { fatBinary } from "../../../src/cli/doctor/fat-binary.ts";

type Part = readonly [kind: "ptx" | "code", architecture: number, bytes: number];

/** Heads of parts are longer than what is read of them. */
const PART_HEAD_BYTES = 64;

function binary(...parts: readonly Part[]): Uint8Array {
  const bytes = parts.reduce((sum, [, , bytes]) => sum + PART_HEAD_BYTES + bytes, 0);
  const file = new Uint8Array(16 + bytes);
  const view = new DataView(file.buffer);
  view.setUint32(0, 0xba55ed50, true);
  let at = 16;
  for (const [kind, architecture, bytes] of parts) {
    view.setUint16(at, kind === "ptx" ? 1 : 2, true);
    view.setUint32(at + 4, PART_HEAD_BYTES, true);
    view.setBigUint64(at + 8, BigInt(bytes), true);
    view.setUint32(at + 28, architecture, true);
    at += PART_HEAD_BYTES + bytes;
  }
  return file;
}

test("a fat binary tells what it was built for, in order and each once", () => {
  const parts: Part[] = [
    ["code", 120, 40],
    ["ptx", 80, 7],
    ["code", 80, 0],
    ["code", 80, 16],
    ["ptx", 120, 300],
  ];
  expect(fatBinary(binary(...parts))).toEqual({ code: [80, 120], ptx: [80, 120] });
  expect(fatBinary(binary())).toEqual({ code: [], ptx: [] });
});

test("what is not one, or ends too early, is told apart", () => {
  const whole = binary(["code", 90, 40], ["ptx", 90, 7]);
  for (let bytes = 0; bytes < whole.length; bytes += 1) {
    const cut = fatBinary(whole.subarray(0, bytes));
    // Behind the head and behind the first part it is a shorter one.
    if (bytes === 16 || bytes === 16 + PART_HEAD_BYTES + 40) expect(cut?.ptx).toEqual([]);
    else expect(cut).toBeUndefined();
  }
  const endless = binary(["code", 90, 40]);
  new DataView(endless.buffer).setUint32(16 + 4, 0, true);
  new DataView(endless.buffer).setBigUint64(16 + 8, 0n, true);
  expect(fatBinary(endless)).toBeUndefined();
  expect(fatBinary(new Uint8Array(64))).toBeUndefined();
});
