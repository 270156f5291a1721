/** What the numbers of a recorded episode are called: by the bundle where it is installed here, else by their places. */
import type { Manifest } from "../../bundle/manifest.ts";
import type { ActionChunk } from "../../client/chunk.ts";
import type { EpisodeHead } from "../../client/episode-log/format.ts";
import { columnsOfSpace } from "../plot/columns.ts";

/** The state as the log has it: the model's vector where the model is known, else all arrays of `robot_state`, in their order. */
export interface RecordedState {
  readonly about: EpisodeHead["state"];
  readonly values: number[];
}

export function recordedState(state: object, manifest: Manifest | undefined): RecordedState {
  const arrays = new Map(Object.entries(state).filter((entry): entry is [string, number[]] => isNumbers(entry[1])));
  const space = (arrays.get("cartesian_position")?.length ?? 0) > 0 ? "cartesian_position" : "joint_position";
  const columns = manifest?.state.columns.map(({ name, from, index }) => ({ name, value: arrays.get(from)?.[index] }));
  const known = columns?.flatMap(({ name, value }) => (value === undefined ? [] : [{ name, value }]));
  const told = known?.length === columns?.length ? known : undefined;
  const all =
    told ?? [...arrays].flatMap(([name, values]) => values.map((value, at) => ({ name: `${name}_${at}`, value })));
  return { about: { space, names: all.map(({ name }) => name) }, values: all.map(({ value }) => value) };
}

/** The head's part about the actions; `dt` as the chunk has it. */
export function recordedAction(chunk: ActionChunk, manifest: Manifest | undefined): EpisodeHead["action"] {
  const known = manifest?.action.columns;
  const columns = known?.length === chunk.action_dim ? known : columnsOfSpace(chunk.action_space, chunk.action_dim);
  return { space: chunk.action_space, names: columns.map(({ name }) => name), dt: chunk.dt };
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((one) => typeof one === "number");
}
