/**
 * A chunk that continues rows which are still being executed (trained real-time chunking, arXiv 2512.05964). That its rows are those which
 * NumPy computed stands in inputs.test.ts; here is what the rows that are continued may be, and what becomes of them.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { present } from "../../src/std/assert.ts";
import { bundleOf, emptyDir, episodeOf, largestDifference } from "../bundle/built.ts";
import type { GoldenInput } from "../bundle/reference.ts";
import { variant } from "../bundle/variants.ts";
import { Opened, refusal, rowsOf } from "./opened.ts";
import { rehearse, rehearsedEngine } from "./wrong-provider.ts";

const GPU = "cuda:0";
const engine = await rehearsedEngine();

/** The model, and the observation whose chunk continues as many rows as it may. */
async function opened(device = "cpu") {
  const bundle = await variant("rtc");
  const episode = await episodeOf(bundle);
  return { model: await Opened.with(engine, bundle, { device }), given: present(episode[1], "the second").given };
}

/** The same observation with the first `count` of its rows. */
function continuing(given: GoldenInput, count: number): GoldenInput {
  return { ...given, prefix: present(given.prefix, "rows").slice(0, count) };
}

test("any number of rows up to the most stands at the begin of the chunk to the bit, and changes what follows", async () => {
  const { model, given } = await opened();
  const most = present(model.bundle.manifest.action.prefix, "the most");
  const seen: number[][][] = [];
  for (let count = 0; count <= most; count += 1) {
    const rows = rowsOf(await model.give(continuing(given, count)));
    const prefix = present(given.prefix, "rows").slice(0, count);
    expect(rows.slice(0, count)).toEqual(prefix.map((row) => row.map(Math.fround)));
    for (const other of seen) expect(largestDifference(rows.slice(most), other.slice(most))).toBeGreaterThan(1e-3);
    seen.push(rows);
  }
  // Nothing of a prefix is left for the next inference, and a replay has the bits of the first answer.
  expect(rowsOf(await model.give(continuing(given, 0)))).toEqual(present(seen[0], "the first"));
  expect(rowsOf(await model.give(given))).toEqual(present(seen.at(-1), "the last"));
  await model.model.unload();
});

test("robots of one batch continue each their own rows", async () => {
  await rehearse({ device: GPU });
  const { model, given } = await opened(GPU);
  const counts = [0, 1, present(given.prefix, "rows").length];
  const alone: number[][][] = [];
  for (const count of counts) alone.push(rowsOf(await model.give(continuing(given, count))));
  for (let round = 0; round < 5; round += 1) {
    const together = await Promise.all(counts.map((count) => model.give(continuing(given, count))));
    together.forEach((chunk, index) => {
      expect(largestDifference(rowsOf(chunk), present(alone[index], "a chunk"))).toBeLessThan(1e-5);
    });
  }
  await model.model.unload();
});

test("the decoded latents of held rows are the rows: what the flow holds is what the robot executes", async () => {
  // The parity check compares decoded latents; a prefix that is not the chunk's must fail it.
  const bundle = await variant("rtc");
  const episode = await episodeOf(bundle);
  const { file } = bundle.manifest.parity;
  const vectors = JSON.parse(await Bun.file(present(bundle.paths.get(file), "vectors")).text());
  vectors.observations[1].prefix[0][0] += 0.01;
  const path = join(await emptyDir(), "vectors.json");
  await Bun.write(path, JSON.stringify(vectors));
  const changed = { ...bundle, paths: new Map([...bundle.paths, [file, path]]) };
  expect(episode).toHaveLength(2);
  expect(await refusal(engine, changed)).toMatch(/its rows are wrong: .* parity vector 2 of 2/);
});

test("more rows than the model may continue, or half of one, is a bug of the caller; on another model any are", async () => {
  const { model, given } = await opened();
  const { columns, prefix: most = 0 } = model.bundle.manifest.action;
  const { prefix: _, ...plain } = await model.observed(given);
  const observe = (values: number) => model.model.observe({ ...plain, prefix: new Float32Array(values) });
  expect(() => observe((most + 1) * columns.length)).toThrow("a chunk continues whole rows, 3 at most");
  expect(() => observe(columns.length - 1)).toThrow("a chunk continues whole rows, 3 at most");
  expect(() => model.model.observe({ ...plain, prefix: new Float32Array(columns.length).fill(100) })).toThrow(
    "row 0 of the prefix, joint_1 is 100, expected -9 to 9",
  );
  expect(() => model.model.observe({ ...plain, prefix: new Float32Array(columns.length).fill(Number.NaN) })).toThrow(
    "is NaN",
  );
  // The frames stayed with the caller.
  for (const frame of plain.frames) frame.drop();
  await model.model.unload();
  const other = await Opened.with(engine, await bundleOf("molmoact2-yam"));
  const observation = await other.observation();
  expect(() => other.model.observe({ ...observation, prefix: new Float32Array(14) })).toThrow("0 at most");
  for (const frame of observation.frames) frame.drop();
  await other.model.unload();
});

test("on echo the rows that a chunk continues are its first", async () => {
  const { model, given } = await opened("echo");
  const rows = rowsOf(await model.give(given));
  expect(rows.slice(0, 3)).toEqual(present(given.prefix, "rows").map((row) => row.map(Math.fround)));
  expect(
    rows
      .slice(3)
      .flat()
      .every((value) => value === 0),
  ).toBe(true);
  await model.model.unload();
});
