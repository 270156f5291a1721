/** The action chunk as a client reads it: its shape, the names of its columns, and the printed table. */
import { STATIONS } from "../edge/robot/chunk.ts";
import { type Align, table } from "../std/text-table.ts";
import { numberAt, parseJson, textAt, valueAt } from "./json.ts";

/** The action chunk of the specification; every field is there and of its type. */
export interface ActionChunk {
  readonly session_id: string;
  readonly step: number;
  /** Seconds between rows. */
  readonly dt: number;
  readonly action_dim: number;
  readonly action_space: string;
  /** At least one row; each has `action_dim` finite values. */
  readonly actions: readonly (readonly number[])[];
  readonly next_frames_per_camera: number;
  readonly timing_ms: Readonly<Record<(typeof STATIONS)[number], number>>;
}

/** The chunk inside a chat completion; undefined when the body holds none, for example a model's description. */
export function chunkOf(completion: unknown): ActionChunk | undefined {
  const content = contentOf(completion);
  const chunk = content === undefined ? undefined : parseJson(content);
  return isChunk(chunk) ? chunk : undefined;
}

/** The chunk of an `action_chunk` message, without what the socket adds; `rows` stand in for those of a binary message. */
export function chunkOfMessage(message: object, rows?: readonly (readonly number[])[]): ActionChunk | undefined {
  const added = ["type", "id", "observation_id", "usage", "replayed", ...(rows === undefined ? [] : ["rows"])];
  const own = Object.entries(message).filter(([key]) => !added.includes(key));
  const chunk: unknown = { ...Object.fromEntries(own), ...(rows === undefined ? {} : { actions: rows }) };
  return isChunk(chunk) ? chunk : undefined;
}

function isChunk(chunk: unknown): chunk is ActionChunk {
  const [width, rows] = [numberAt(chunk, "action_dim"), valueAt(chunk, "actions")];
  const texts = [textAt(chunk, "session_id"), textAt(chunk, "action_space")];
  const numbers = [
    ...[numberAt(chunk, "step"), numberAt(chunk, "dt"), numberAt(chunk, "next_frames_per_camera")],
    ...STATIONS.map((station) => numberAt(chunk, "timing_ms", station)),
  ];
  const isRow = (row: unknown): boolean =>
    Array.isArray(row) && row.length === width && row.every((value) => Number.isFinite(value));
  return (
    [...texts, ...numbers].every((value) => value !== undefined) &&
    Array.isArray(rows) &&
    rows.length > 0 &&
    rows.every(isRow)
  );
}

/** The assistant's text of a chat completion. */
export function contentOf(completion: unknown): string | undefined {
  return textAt(completion, "choices", 0, "message", "content");
}

/** One value of a row: its name and the unit it is in. */
export interface Column {
  readonly name: string;
  readonly unit: string;
}

/** Columns by the action spaces of the specification, for a model whose bundle is not at hand. */
export function columnsOfSpace(space: string, width: number): Column[] {
  const sides = ["left", "right"];
  if (space === "joint_position" && width === 14) {
    return sides.flatMap((side) => [
      ...[1, 2, 3, 4, 5, 6].map((joint) => ({ name: `${side}_joint_${joint}`, unit: "rad" })),
      { name: `${side}_gripper`, unit: "0-1" },
    ]);
  }
  if (space === "cartesian_position" && width === 20) {
    return sides.flatMap((side) => [
      ...["x", "y", "z"].map((axis) => ({ name: `${side}_${axis}`, unit: "m" })),
      ...[1, 2, 3, 4, 5, 6].map((value) => ({ name: `${side}_rotation_${value}`, unit: "" })),
      { name: `${side}_gripper`, unit: "" },
    ]);
  }
  return Array.from({ length: width }, (_, index) => ({ name: `column_${index + 1}`, unit: "" }));
}

/** `left_joint_1` as a person reads it: the part that a row of panels shares, and the rest. */
export function nameParts(name: string): { group: string; rest: string } {
  const words = name.split(/[_\s.]+/).filter((word) => word !== "");
  const [first = name, ...rest] = words;
  return rest.length === 0 ? { group: "", rest: first } : { group: first, rest: rest.join(" ") };
}

/** The rows as an aligned table: time in seconds, then one column per joint with its unit below its name. */
export function chunkTable(chunk: ActionChunk, columns: readonly Column[]): string {
  const parts = columns.map((column) => ({ ...nameParts(column.name), unit: column.unit }));
  const head = [
    ["", ...parts.map((part) => part.group)],
    ["time", ...parts.map((part) => part.rest)],
    ["s", ...parts.map((part) => part.unit)],
  ];
  const rows = chunk.actions.map((row, index) => [
    (index * chunk.dt).toFixed(3),
    ...row.map((value) => value.toFixed(4)),
  ]);
  const align: Align[] = ["right", ...columns.map((): Align => "right")];
  return table([...head, ...rows], align);
}
