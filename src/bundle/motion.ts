/** Whether rotations, poses and velocities of a manifest fit its columns, and how many values the policy has for them. */
import { fault } from "./fault.ts";
import type { Manifest } from "./manifest.ts";

type Column = Manifest["action"]["columns"][number];
type StateColumn = Manifest["state"]["columns"][number];
type Rotations = Manifest["action"]["rotations"];

/** Values of a policy: of a quaternion four, where the wire has six columns. */
export function valuesOf({ columns, rotations = [] }: { columns: readonly unknown[]; rotations?: Rotations }): number {
  return columns.length - rotations.reduce((sum, { form }) => sum + 6 - numbersOf(form), 0);
}

/** The state column that an action column is compared with; undefined where there is none. */
export function comparedWith({ state, action }: Manifest, index: number): StateColumn | undefined {
  const column = action.columns[index];
  if (column === undefined) return undefined;
  if (column.relative_to !== null) return state.columns[column.relative_to];
  for (const { position, rotation, state_position: at, state_rotation: turned } of action.poses ?? []) {
    if (index >= position && index < position + 3) return state.columns[at + index - position];
    if (index >= rotation && index < rotation + 6) return state.columns[turned + index - rotation];
  }
  return state.columns.find(({ name }) => name === column.name);
}

/** The first contradiction, as `contradiction` says it. */
export function checkMotion(manifest: Manifest): string | undefined {
  return checkStateRotations(manifest) ?? checkRotations(manifest) ?? checkPoses(manifest) ?? checkVelocities(manifest);
}

function checkStateRotations({ state }: Manifest): string | undefined {
  const taken = new Set<number>();
  for (const [index, { at, form, near }] of (state.rotations ?? []).entries()) {
    const path = `/state/rotations/${index}`;
    if (!isWireRotation(state.columns, at) || !take(taken, at, 6))
      return fault(`${path}/at`, at, "the first of six columns of a rotation6d of cartesian_position, read once");
    const cut = firstNormalised(state.columns, at + numbersOf(form), at + 6);
    if (cut !== undefined) return fault(`/state/columns/${cut}/norm`, state.columns[cut]?.norm, `none, with ${form}`);
    if (near === undefined) continue;
    if (numbersOf(form) !== 4) return fault(`${path}/near`, near, `nothing, with ${form}`);
    if (near.every((value) => value === 0)) return fault(`${path}/near`, near, "a direction");
  }
  return undefined;
}

function checkRotations({ action }: Manifest): string | undefined {
  const taken = new Set<number>();
  for (const [index, { at, form }] of (action.rotations ?? []).entries()) {
    if (!action.rotation6d.includes(at) || !take(taken, at, 6))
      return fault(`/action/rotations/${index}/at`, at, "one of rotation6d, once");
    const cut = firstNormalised(action.columns, at + numbersOf(form), at + 6);
    if (cut !== undefined) return fault(`/action/columns/${cut}/norm`, action.columns[cut]?.norm, `none, with ${form}`);
    const moved = firstRelative(action.columns, at, at + 6);
    if (moved !== undefined) return fault(`/action/columns/${moved}/relative_to`, "a column", `null, with ${form}`);
  }
  return undefined;
}

/** Nine columns each, and the state's pose that they are relative to. */
function checkPoses({ state, action }: Manifest): string | undefined {
  const taken = new Set<number>(action.rotation6d.flatMap((start) => [0, 1, 2, 3, 4, 5].map((at) => start + at)));
  const turned = new Set<number>();
  for (const [index, pose] of (action.poses ?? []).entries()) {
    const path = `/action/poses/${index}`;
    const { position, rotation, state_position: at, state_rotation: from } = pose;
    if (position + 3 > action.columns.length || !take(taken, position, 3))
      return fault(`${path}/position`, position, "three columns of its own");
    if (!action.rotation6d.includes(rotation) || !take(turned, rotation, 6))
      return fault(`${path}/rotation`, rotation, "one of rotation6d, once");
    const units = [0, 1, 2].map((axis) => [state.columns[at + axis]?.unit, action.columns[position + axis]?.unit]);
    if (units.some(([one, other]) => one !== other))
      return fault(`${path}/state_position`, at, "three state columns in the units of the position");
    if (!isWireRotation(state.columns, from))
      return fault(`${path}/state_rotation`, from, "the first of six columns of a rotation6d of cartesian_position");
    const moved =
      firstRelative(action.columns, position, position + 3) ?? firstRelative(action.columns, rotation, rotation + 6);
    if (moved !== undefined) return fault(`/action/columns/${moved}/relative_to`, "a column", "null, in a pose");
  }
  return undefined;
}

function checkVelocities({ state, action }: Manifest): string | undefined {
  const index = action.columns.findIndex(({ velocity, relative_to: base, unit }) => {
    return velocity === true && (base === null || state.columns[base]?.unit !== unit);
  });
  if (index < 0) return undefined;
  const { relative_to: base, unit } = action.columns[index] as Column;
  return fault(`/action/columns/${index}/relative_to`, base, `a state column in ${unit}, where the velocity begins`);
}

function numbersOf(form: NonNullable<Rotations>[number]["form"]): 4 | 6 {
  return form === "rotation6d_rows" ? 6 : 4;
}

/** The columns read a rotation6d of the wire: per arm three values of position, then the six. */
function isWireRotation(columns: readonly StateColumn[], at: number): boolean {
  const start = columns[at]?.index;
  const six = columns.slice(at, at + 6);
  const inOrder = six.every(({ from, index }, step) => from === "cartesian_position" && index === (start ?? 0) + step);
  return six.length === 6 && inOrder && (start === 3 || start === 12);
}

function firstNormalised(columns: readonly { norm: string }[], from: number, to: number): number | undefined {
  const index = columns.findIndex(({ norm }, at) => at >= from && at < to && norm !== "none");
  return index < 0 ? undefined : index;
}

function firstRelative(columns: readonly Column[], from: number, to: number): number | undefined {
  const index = columns.findIndex(({ relative_to: base }, at) => at >= from && at < to && base !== null);
  return index < 0 ? undefined : index;
}

/** Whether `count` columns were free; they are not any more. */
function take(taken: Set<number>, from: number, count: number): boolean {
  const columns = Array.from({ length: count }, (_, at) => from + at);
  if (columns.some((column) => taken.has(column))) return false;
  for (const column of columns) taken.add(column);
  return true;
}
