/** Rotations in a policy's own form, poses and velocities: what contradicts itself in a manifest. */
import { beforeAll, expect, test } from "bun:test";
import { contradiction } from "../../src/bundle/consistency.ts";
import { show } from "../../src/bundle/describe.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { comparedWith, valuesOf } from "../../src/bundle/motion.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, VARIANT_DIR } from "./built.ts";

let poses: Manifest;
let velocities: Manifest;
beforeAll(async () => {
  poses = (await bundleOf(`${VARIANT_DIR}/poses`)).manifest;
  velocities = (await bundleOf(`${VARIANT_DIR}/velocities`)).manifest;
});

type Edit = (manifest: Manifest) => unknown;

function faultOf(manifest: Manifest, edit: Edit): string | undefined {
  const edited = structuredClone(manifest);
  edit(edited);
  return contradiction(edited);
}

const first = <T>(values: readonly T[] | undefined): T => present(values?.[0], "the first");
const column = (m: Manifest, index: number) => present(m.action.columns[index], "a column");

test("a quaternion is four values where the wire has six columns", () => {
  expect([valuesOf(poses.state), valuesOf(poses.action), valuesOf(velocities.action)]).toEqual([18, 18, 14]);
  expect(faultOf(poses, (m) => Object.assign(m.action, { width: 17 }))).toBe(
    "/action/columns: found columns for 18 values, expected 17 at most",
  );
});

test("a column is compared with its relative_to, its pose's column, or the one of its name", () => {
  const compared = [0, 2, 3, 8, 9, 10, 19].map((index) => comparedWith(poses, index)?.name);
  expect(compared).toEqual(["left_x", "left_z", "left_r1x", "left_r2z", "left_gripper", "right_x", "right_gripper"]);
  const crossed = structuredClone(poses);
  Object.assign(first(crossed.action.poses), { state_position: 10, state_rotation: 13 });
  const others = [0, 8, 9].map((index) => comparedWith(crossed, index)?.name);
  expect(others).toEqual(["right_x", "right_r2z", "left_gripper"]);
  expect(comparedWith(velocities, 5)?.name).toBe("left_joint_6");
});

test("an operator is shown what rows and state are inside the policy", () => {
  const lines = (manifest: Manifest) => show(manifest).split("\n");
  expect(lines(poses).filter((line) => /left_.*(quaternion|pose)/.test(line))).toEqual([
    "motion   state left_r1x: quaternion_wxyz",
    "         left_r1x: quaternion_xyzw",
    "         left_x: a pose relative to the state's at left_x",
  ]);
  expect(lines(velocities)).toContain("motion   left_joint_1: a velocity over dt");
  const plain = {
    ...poses,
    state: { ...poses.state, rotations: undefined },
    action: { ...poses.action, rotations: undefined },
  };
  expect(show({ ...plain, action: { ...plain.action, poses: undefined } } as unknown as Manifest)).not.toContain(
    "motion",
  );
});

test("rotations that are none, or twice, or normalised where the policy has no value", () => {
  const cases: [Edit, string][] = [
    [(m) => Object.assign(first(m.state.rotations), { at: 4 }), "/state/rotations/0/at: found 4, expected the first"],
    [(m) => Object.assign(first(m.state.rotations), { at: 13 }), "/state/rotations/1/at: found 13"],
    [
      (m) => m.state.columns.reverse(),
      "/state/rotations/0/at: found 3, expected the first of six columns of a rotation6d of cartesian_position",
    ],
    [
      (m) => Object.assign(present(m.state.columns[7], "a column"), { norm: "quantile" }),
      "/state/columns/7/norm: found quantile, expected none, with quaternion_wxyz",
    ],
    [
      (m) => Object.assign(first(m.state.rotations), { near: [0, 0, 0, 0] }),
      "/state/rotations/0/near: found [0,0,0,0]",
    ],
    [
      (m) => Object.assign(present(m.state.rotations?.[1], "a rotation"), { near: [1, 0, 0, 0] }),
      "/state/rotations/1/near: found [1,0,0,0], expected nothing, with rotation6d_rows",
    ],
    [
      (m) => Object.assign(first(m.action.rotations), { at: 4 }),
      "/action/rotations/0/at: found 4, expected one of rotation6d",
    ],
    [(m) => Object.assign(first(m.action.rotations), { at: 13 }), "/action/rotations/1/at: found 13"],
    [
      (m) => Object.assign(column(m, 8), { norm: "mean_std" }),
      "/action/columns/8/norm: found mean_std, expected none, with quaternion_xyzw",
    ],
    [
      (m) => Object.assign(column(m, 15), { relative_to: 15 }),
      "/action/columns/15/relative_to: found a column, expected null, with rotation6d_rows",
    ],
  ];
  for (const [edit, expected] of cases) expect(faultOf(poses, edit) ?? "no fault").toContain(expected);
});

test("poses that reach too far, or share columns, or whose state is none", () => {
  const cases: [object, string][] = [
    [{ position: 18 }, "/action/poses/0/position: found 18, expected three columns of its own"],
    [{ position: 2 }, "/action/poses/0/position: found 2"],
    [{ position: 10 }, "/action/poses/1/position: found 10"],
    [{ rotation: 4 }, "/action/poses/0/rotation: found 4, expected one of rotation6d, once"],
    [{ rotation: 13 }, "/action/poses/1/rotation: found 13"],
    [{ state_position: 1 }, "/action/poses/0/state_position: found 1, expected three state columns in the units"],
    [{ state_position: 18 }, "/action/poses/0/state_position: found 18"],
    [{ state_rotation: 2 }, "/action/poses/0/state_rotation: found 2, expected the first of six columns"],
    [{ state_rotation: 19 }, "/action/poses/0/state_rotation: found 19"],
  ];
  for (const [change, expected] of cases)
    expect(faultOf(poses, (m) => Object.assign(first(m.action.poses), change)) ?? "no fault").toContain(expected);
  expect(faultOf(poses, (m) => Object.assign(column(m, 1), { relative_to: 1 }))).toContain(
    "/action/columns/1/relative_to: found a column, expected null, in a pose",
  );
});

test("a velocity without a state to begin at, or in another unit", () => {
  const expected = "/action/columns/2/relative_to: found";
  expect(faultOf(velocities, (m) => Object.assign(column(m, 2), { relative_to: null, max_jump: undefined }))).toContain(
    expected,
  );
  expect(faultOf(velocities, (m) => Object.assign(column(m, 2), { relative_to: 13, max_jump: undefined }))).toContain(
    `${expected} 13, expected a state column in rad, where the velocity begins`,
  );
});
