/** The small size of `npm run prove runs-large`. */
import { expect, test } from "bun:test";
import { largeUpload } from "./runs-large.ts";

test("an upload in parts over a kill -9 ends byte for byte, and a bit that turns over on the way is found", async () => {
  const { kills, parts, flipsFound } = await largeUpload({ mib: 48, kills: [1], flipped: [2] });
  expect([kills, parts, flipsFound]).toEqual([1, 3, 1]);
}, 120_000);
