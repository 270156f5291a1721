import { expect, test } from "bun:test";
import { findIndex } from "../../src/std/mp4-boxes.ts";

/** A file of `free` boxes, then an index. */
function file(boxes: number): Uint8Array {
  const one = (letters: string) => [0, 0, 0, 8, ...Buffer.from(letters)];
  return Uint8Array.from([...Array.from({ length: boxes }, () => one("free")).flat(), ...one("moov")]);
}

async function sought(boxes: number) {
  let reads = 0;
  const bytes = file(boxes);
  const found = await findIndex(bytes.length, async (start, end) => {
    reads += 1;
    return bytes.subarray(start, end);
  });
  return { found, reads };
}

test("the index is found behind some boxes", async () => {
  expect(await sought(15)).toEqual({ found: { from: 128, to: 128 }, reads: 16 });
});

test("the search for an index ends after 16 reads, however many boxes are before it", async () => {
  expect(await sought(100)).toEqual({ found: "none", reads: 16 });
});
