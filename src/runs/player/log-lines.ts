/**
 * The lines of a run's log, `episode.jsonl`: its head, observations with their chunks, and which action row is due at a time. A field
 * with a wrong value is read as absent.
 */

interface Camera {
  readonly name: string;
  /** The path of its video in the run; without a video the observations name its frames. */
  readonly video?: string;
}

export interface Head {
  readonly model: string | undefined;
  readonly instruction: string | undefined;
  readonly cameras: readonly Camera[];
  readonly stateNames: readonly string[];
  readonly actionNames: readonly string[];
  /** Seconds between two action rows. */
  readonly dt: number;
}

interface Chunk {
  /** The time at which its first row is due, in seconds since the run's start. */
  readonly start: number;
  readonly actions: readonly (readonly number[])[];
}

export interface Observation {
  /** The offset of its line in the log. */
  readonly offset: number;
  /** Seconds since the run's start. */
  readonly t: number;
  readonly step: number | undefined;
  readonly observationId: string | undefined;
  readonly state: readonly number[];
  readonly frames: ReadonlyMap<string, readonly string[]>;
  readonly chunk: Chunk | undefined;
  readonly latencyMs: number | undefined;
  readonly timingsMs: readonly (readonly [string, number])[];
  readonly error: string | undefined;
}

/** The reason why a log cannot be shown, as a text for the page. */
export class LogProblem extends Error {}

export function headOf(line: string): Head {
  const head = objectOf(line);
  if (head?.type !== "episode") throw new LogProblem("its first line is not the head of an episode");
  if (head.version !== 1)
    throw new LogProblem(`it is of version ${String(head.version).slice(0, 20)}; this page reads version 1`);
  const state = record(head.state);
  const action = record(head.action);
  const dt = number(action.dt);
  if (dt === undefined || dt <= 0) throw new LogProblem("its head has no time between action rows (action.dt)");
  return {
    model: text(head.model),
    instruction: text(head.instruction),
    cameras: list(head.cameras).flatMap((one) => {
      const { name, video } = record(one);
      if (typeof name !== "string") return [];
      return [typeof video === "string" ? { name, video } : { name }];
    }),
    stateNames: texts(state.names),
    actionNames: texts(action.names),
    dt,
  };
}

/** Undefined if the line is not an observation. */
export function observationOf(line: string, offset: number): Observation | undefined {
  const one = objectOf(line);
  const t = number(one?.t);
  if (one?.type !== "observation" || t === undefined) return undefined;
  return {
    offset,
    t,
    step: number(one.step),
    observationId: text(one.observation_id),
    state: numbers(one.state),
    frames: new Map(Object.entries(record(one.frames)).map(([camera, paths]) => [camera, texts(paths)])),
    chunk: chunkOf(record(one.chunk)),
    latencyMs: number(one.latency_ms),
    timingsMs: Object.entries(record(one.timing_ms)).flatMap(([name, ms]) =>
      typeof ms === "number" ? [[name, ms] as const] : [],
    ),
    error: errorOf(record(one.error)),
  };
}

function chunkOf({ start, actions }: Record<string, unknown>): Chunk | undefined {
  const at = number(start);
  return at === undefined ? undefined : { start: at, actions: list(actions).map(numbers) };
}

function errorOf({ code, message }: Record<string, unknown>): string | undefined {
  if (typeof code !== "string") return undefined;
  return typeof message === "string" ? `${code}: ${message}` : code;
}

function objectOf(line: string): Record<string, unknown> | undefined {
  try {
    return record(JSON.parse(line));
  } catch {
    return undefined;
  }
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Values that are not numbers become NaN, so that the other values keep their names. */
function numbers(value: unknown): number[] {
  return list(value).map((one) => number(one) ?? Number.NaN);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function texts(value: unknown): string[] {
  return list(value).map((one) => (typeof one === "string" ? one : "?"));
}

/** A tolerance, because rounding of `start + i * dt` must not select the previous row. */
const HAIR_SECONDS = 1e-6;

export interface DueRow {
  readonly row: readonly number[];
  readonly index: number;
  /** The number of rows of its chunk. */
  readonly of: number;
}

/** The row that is due at `t`; undefined before the first chunk and after the last row. `lines` are in order. */
export function dueAt(lines: readonly Observation[], t: number, dt: number): DueRow | undefined {
  const chunk = chunksOf(lines).findLast(({ start }) => start <= t + HAIR_SECONDS);
  if (chunk === undefined) return undefined;
  const index = Math.floor((t - chunk.start + HAIR_SECONDS) / dt);
  const row = chunk.actions[index];
  return row === undefined ? undefined : { row, index, of: chunk.actions.length };
}

export interface Point {
  readonly t: number;
  readonly value: number;
}

/** One action column over time, with a line for each chunk. A chunk ends where the next one starts. */
export function dueLines(lines: readonly Observation[], column: number, dt: number): Point[][] {
  const chunks = chunksOf(lines);
  return chunks.map(({ start, actions }, at) => {
    const end = chunks[at + 1]?.start ?? Number.POSITIVE_INFINITY;
    const points: Point[] = [];
    for (const [index, row] of actions.entries()) {
      const t = start + index * dt;
      if (t >= end - HAIR_SECONDS) break;
      points.push({ t, value: row[column] ?? Number.NaN });
    }
    return points;
  });
}

/** One action column as a single line through the first row of each chunk, for observations that are far apart. */
export function dueSamples(lines: readonly Observation[], column: number): Point[][] {
  return [chunksOf(lines).map(({ start, actions }) => ({ t: start, value: actions[0]?.[column] ?? Number.NaN }))];
}

function chunksOf(lines: readonly Observation[]): Chunk[] {
  return lines.flatMap(({ chunk }) => (chunk === undefined ? [] : [chunk]));
}
