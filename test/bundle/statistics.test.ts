/** Norm statistics that are missing, too short or useless are refused with path, found and expected. */
import { expect, test } from "bun:test";
import type { Manifest, NormStats } from "../../src/bundle/manifest.ts";
import { statisticFault } from "../../src/bundle/statistics.ts";

type How = Partial<Manifest["action"]["columns"][number]>;

/** A model of three rows whose two state and two action columns are normalised so. */
function faultOf(how: How, norm: Partial<NormStats>): string | undefined {
  const columns = ["one", "two"].map((name) => ({ name, ...how }));
  const manifest = { state: { columns }, action: { columns, rows: 3 } } as unknown as Manifest;
  return statisticFault(manifest, { state: {}, action: {}, ...norm });
}

const MIN_MAX: How = { norm: "min_max" };
const state = { min: [0, 0], max: [1, 1] };

test("a list for all rows and a table with a list for each are good, also beside each other", () => {
  const table = [0, 1, 2].map((row) => [row + 2, row + 3]);
  expect(faultOf(MIN_MAX, { state, action: state })).toBeUndefined();
  expect(faultOf(MIN_MAX, { state, action: { min: [0, 0], max: table } })).toBeUndefined();
  expect(faultOf({ norm: "none" }, {})).toBeUndefined();
});

test("what is missing is named, in a list, in a table and in a row of it", () => {
  expect(faultOf(MIN_MAX, {})).toBe("/state/min: found 0 values, expected one for column 0 (one)");
  expect(faultOf({ norm: "quantile" }, { state: { q01: [0, 0], q99: [1] } })).toBe(
    "/state/q99: found 1 values, expected one for column 1 (two)",
  );
  const two = [state.max, state.max];
  expect(faultOf(MIN_MAX, { state, action: { min: [0, 0], max: two } })).toBe(
    "/action/max: found 2 rows, expected 3, one for each of a chunk",
  );
  const ragged = [...two, [1]];
  expect(faultOf(MIN_MAX, { state, action: { min: [0, 0], max: ragged } })).toBe(
    "/action/max/2: found 1 values, expected one for column 1 (two)",
  );
});

test("a range or a deviation of 0 is named where its epsilon leaves nothing to divide by, and one below 0 anywhere", () => {
  const flat = [
    [1, 1],
    [1, 0],
    [1, -1],
  ];
  expect(faultOf(MIN_MAX, { state, action: { min: [0, 0], max: flat } })).toBe(
    "/action/max/2/1: found -1, expected at least min, 0",
  );
  const still = { min: [0, 0], max: [1, 0], mean: [0, 0], std: [1, 0] };
  for (const norm of ["min_max", "mean_std"] as const) {
    for (const epsilon_rule of ["added", "zero_range", "at_least"] as const) {
      const found = (epsilon?: number) =>
        faultOf({ norm, epsilon_rule, ...(epsilon !== undefined && { epsilon }) }, { state: still, action: still });
      expect(found()).toBeUndefined();
      const [path, least] = norm === "min_max" ? ["max", "min, 0"] : ["std", "0"];
      const isFlat = norm === "min_max" && epsilon_rule === "at_least";
      expect(found(0)).toBe(
        isFlat ? undefined : `/state/${path}/1: found 0, expected more than ${least}, with the epsilon 0`,
      );
    }
  }
});
