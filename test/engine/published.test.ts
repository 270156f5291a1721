/** What published policies declare, in small variants of a family: the native engine's chunk is that of the reference path. */
import { expect, test } from "bun:test";
import { largestDifference, parityOf } from "../bundle/built.ts";
import { referenceChunk } from "../bundle/reference.ts";
import { type Change, seventhBundle } from "../bundle/seventh.ts";
import { engineOfFile, Opened, rowsOf } from "./opened.ts";

const engine = await engineOfFile();

/** The rows of both, for the observation of the parity file. */
async function both(change: Change): Promise<{ native: number[][]; reference: number[][] }> {
  const bundle = await seventhBundle("flow-vla", change);
  const opened = await Opened.with(engine, bundle);
  const { given } = await parityOf(bundle);
  const native = rowsOf(await opened.give(given));
  await opened.model.unload();
  return { native, reference: await referenceChunk(bundle, given) };
}

/** Statistics as GR00T has them: min and max, those of the actions for each row of the chunk; both clipped, nothing added. */
const groot: Change = ({ state, action }, norm) => {
  const how = { norm: "min_max", epsilon: 0, clip: { min: -1, max: 1 } } as const;
  for (const column of [...state.columns, ...action.columns]) Object.assign(column, how);
  norm.state = { min: norm.state.q01 ?? [], max: (norm.state.q99 ?? []).map((high) => high + 0.3) };
  const wider = (values: unknown, by: number) =>
    Array.from({ length: action.rows }, (_, row) => (values as number[]).map((value) => value + by * row));
  norm.action = { min: wider(norm.action.q01, -0.01), max: wider(norm.action.q99, 0.02) };
  unlimited(action);
};

/** Random weights in a small model move further than the limits of its big sister allow. */
function unlimited({ columns }: Parameters<Change>[0]["action"]): void {
  for (const column of columns) {
    delete column.max_jump;
    delete column.max_step;
  }
}

test("min-max of each row, clipped, without epsilon", async () => {
  const plain = await both((model, norm) => {
    groot(model, norm);
    for (const column of model.action.columns) delete column.clip;
  });
  const { native, reference } = await both(groot);
  expect(largestDifference(native, reference)).toBeLessThan(1e-4);
  expect(largestDifference(plain.native, plain.reference)).toBeLessThan(1e-4);
  // The clip is passed somewhere, or this would test nothing of it.
  expect(largestDifference(native, plain.native)).toBeGreaterThan(1e-2);
});

test("a padded picture at each of its places, each of which changes the rows", async () => {
  const seen: number[][][] = [];
  for (const place of ["centre", "bottom_right"] as const) {
    const { native, reference } = await both(({ image }) => {
      Object.assign(image, { resize: "pad", place });
    });
    expect(largestDifference(native, reference)).toBeLessThan(1e-4);
    for (const other of seen) expect(largestDifference(native, other)).toBeGreaterThan(1e-3);
    seen.push(native);
  }
});

/** Forms of SmolVLA: the state is a token of the prefix, and the second block reads projections of its keys and values. */
const smolVla: Change = ({ prompt, action, architecture }) => {
  unlimited(action);
  prompt.parts = [{ kind: "instruction" }];
  if ("transformer" in architecture) return;
  const forms = { activation: "silu", epsilon: 1e-5 } as const;
  Object.assign(architecture.language, forms);
  const blocks = [{ layer: 0 }, { layer: 1, reads: "prefix" }];
  Object.assign(architecture.expert, forms, { time: "joined", rows: "causal", blocks });
  architecture.inputs = { state: "prefix" };
};

test("a state in the prefix, with and without lengths of prompts, changes the rows", async () => {
  const { native, reference } = await both(smolVla);
  expect(largestDifference(native, reference)).toBeLessThan(1e-4);
  const shorter = await both((model, norm) => {
    smolVla(model, norm);
    model.prompt.buckets = [16, 32];
  });
  expect(largestDifference(shorter.native, shorter.reference)).toBeLessThan(1e-4);
  const other = await both((model, norm) => {
    smolVla(model, norm);
    norm.state.q01 = (norm.state.q01 ?? []).map((low) => low - 1);
  });
  expect(largestDifference(other.native, other.reference)).toBeLessThan(1e-4);
  expect(largestDifference(native, other.native)).toBeGreaterThan(1e-3);
});

test("times that the manifest lists, which are no equal steps", async () => {
  const rows = async (times: number[]) => {
    const { native, reference } = await both(({ action, flow }) => {
      unlimited(action);
      Object.assign(flow, { steps: 4, times });
    });
    expect(largestDifference(native, reference)).toBeLessThan(1e-4);
    return native;
  };
  const [equal, listed] = [await rows([1, 0.75, 0.5, 0.25, 0]), await rows([1, 0.5, 0.25, 0.125, 0])];
  expect(largestDifference(equal, listed)).toBeGreaterThan(1e-3);
});

test("64 rows of 32 columns, as many values as a chunk can have", async () => {
  const { native, reference } = await both(({ action }) => {
    action.rows = 64;
    action.width = 32;
    unlimited(action);
    while (action.columns.length < 32) {
      const name = `extra_${action.columns.length}`;
      action.columns.push({ name, unit: "1", norm: "none", relative_to: null, min: -9, max: 9 });
    }
  });
  expect([native.length, native[0]?.length]).toEqual([64, 32]);
  expect(largestDifference(native, reference)).toBeLessThan(1e-4);
  expect(largestDifference(native.slice(60, 61), native.slice(63))).toBeGreaterThan(1e-3);
});
