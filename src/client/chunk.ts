/** The action chunk as a client reads it, from a chat completion or from a message of the socket. */
import { STATIONS } from "../engine/engine.ts";
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
  /** The model forgot what it had seen before this chunk. */
  readonly cache_reset?: boolean;
}

/** The chunk inside a chat completion; undefined when the body holds none, for example a model's description. */
export function chunkOf(completion: unknown): ActionChunk | undefined {
  const content = contentOf(completion);
  const chunk = content === undefined ? undefined : parseJson(content);
  return isChunk(chunk) ? chunk : undefined;
}

/** What an `action_chunk` message has beyond the chunk; `rows` only where the rows come as bytes. */
const OF_THE_MESSAGE = ["type", "id", "observation_id", "usage", "replayed", "rows"];

/** The chunk of an `action_chunk` message. */
export function chunkOfMessage(message: object): ActionChunk | undefined {
  const own = Object.entries(message).filter(([key]) => !OF_THE_MESSAGE.includes(key));
  const chunk: unknown = Object.fromEntries(own);
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
