import { expect, test } from "bun:test";
import { chunkOf } from "../../src/client/chunk.ts";
import { CHUNK as chunk } from "./sample-chunk.ts";

const completion = { choices: [{ index: 0, message: { role: "assistant", content: JSON.stringify(chunk) } }] };

test("a body without a chunk, or with ragged rows, is none", () => {
  expect(chunkOf(completion)).toEqual(chunk);
  expect(chunkOf({})).toBeUndefined();
  expect(chunkOf({ choices: [{ message: { content: "a description" } }] })).toBeUndefined();
  const ragged = { ...chunk, actions: [[1, 2]] };
  expect(chunkOf({ choices: [{ message: { content: JSON.stringify(ragged) } }] })).toBeUndefined();
});
