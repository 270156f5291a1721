/** Ids that a bundle may be served under, the shapes that the specified ids keep, and the columns of a robot that has none of them. */
import { expect, test } from "bun:test";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { idFault } from "../../src/bundle/served-id.ts";
import { SPECIFIED_IDS } from "../../src/config/robot.ts";
import { present } from "../../src/std/assert.ts";
import { cartesianManifest, manifest, statefulManifest, vectorManifest } from "../robot/manifests.ts";
import { edited } from "./damaged.ts";

const ofId = (id: string) => idFault({ ...vectorManifest(), id });

test("an operator's own id has 1 to 128 characters of a-z 0-9 . _ / : - and begins with a letter or digit", () => {
  for (const id of ["a", "0", "lab/so101:pick", "a/b/c:d", `a${"b".repeat(127)}`]) expect(ofId(id)).toBeUndefined();
  for (const id of ["", "/a", ":a", "Lab/arm", "vendorB/other:yam", "lab arm", "lab/ärm", `a${"b".repeat(128)}`])
    expect(ofId(id)).toStartWith(`/id: found ${id}, expected 1 to 128 characters of a-z 0-9 . _ / : -`);
});

test("a specified id keeps its shape, and a bundle of another one is refused by its name", async () => {
  for (const id of SPECIFIED_IDS) {
    const wrong = { ...vectorManifest(), id };
    expect(idFault(wrong)).toContain(`as clients of ${id} rely on it; another shape needs an id of your own`);
  }
  for (const right of [manifest(), statefulManifest(), cartesianManifest()]) expect(idFault(right)).toBeUndefined();
  const base = manifest();
  const cases: readonly (readonly [changes: Partial<Manifest>, told: string])[] = [
    [{ state: vectorManifest().state }, "/state/kind: found vector, expected joint, as"],
    [{ cameras: ["left", "top", "right"] }, "/cameras: found left, top, right, expected top, left, right, as"],
    [{ stateful: true }, "/stateful: found true, expected false, as"],
    [
      { action: { ...base.action, columns: base.action.columns.slice(1) } },
      "/action/columns: found 13 columns, expected 14",
    ],
    [{ action: { ...base.action, rows: 31 } }, "/action/rows: found 31, expected 30 at most, as"],
  ];
  for (const [changes, told] of cases) expect(idFault({ ...base, ...changes })).toStartWith(told);
  const swapped = await edited((m) => {
    m.cameras.reverse();
  });
  expect(swapped).toContain(
    "/cameras: found right, left, top, expected top, left, right, as clients of vendorB/molmoact2",
  );
});

test("a vector's columns are the whole array in its order, and its actions are a vector too", async () => {
  const vector = (m: Manifest) => {
    Object.assign(m, { id: "lab/arm" });
    Object.assign(m.state, { kind: "vector" });
    Object.assign(m.action, { space: "vector" });
    for (const [index, column] of m.state.columns.entries()) Object.assign(column, { from: "state", index });
  };
  const third = (m: Manifest) => present(m.state.columns[2], "a column");
  const cases: readonly (readonly [isVector: boolean, edit: (m: Manifest) => object, told: string])[] = [
    [
      true,
      (m) => Object.assign(third(m), { from: "joint_position" }),
      "/state/columns/2/from: found joint_position, expected state in vector state",
    ],
    [true, (m) => Object.assign(third(m), { index: 5 }), "/state/columns/2/index: found 5, expected 2"],
    [
      true,
      (m) => Object.assign(m.action, { space: "joint_position" }),
      "/action/space: found joint_position, expected vector, as the state is",
    ],
    [false, (m) => Object.assign(m.action, { space: "vector" }), "/action/space: found vector, expected another one"],
    [
      false,
      (m) => Object.assign(third(m), { from: "state" }),
      "/state/columns/2/from: found state, expected joint_position or gripper_position in joint state",
    ],
  ];
  for (const [isVector, edit, told] of cases) {
    const message = await edited((m) => {
      if (isVector) vector(m);
      edit(m);
    });
    expect(message).toContain(told);
  }
});
