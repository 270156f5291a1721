/**
 * The answer to an observation: a head and float32 rows, in the form of no transport, with its `timing_ms`, its failures and the
 * chunk as text. A first answer and a replay are printed from it by the same code.
 */
import type { Usage } from "../charge/store/records.ts";
import type { ChunkResult, STATIONS } from "../engine/engine.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import { rowsText } from "../std/float32.ts";
import type { ObserveCommand } from "./command.ts";
import { ROBOT } from "./errors.ts";
import type { Ticket } from "./session/ticket.ts";
import type { NeutralAnswer } from "./store/records.ts";

/** The head as it is stored, in the words of the wire, which http/openapi.ts explains. */
export interface AnswerHead {
  /** The generation id. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  readonly session_id: string;
  readonly step: number;
  readonly dt: number;
  readonly action_dim: number;
  readonly action_space: string;
  readonly next_frames_per_camera: number;
  readonly timing_ms: Timing;
  readonly cache_reset?: true;
  readonly clamped?: number;
  readonly usage: {
    readonly prompt_tokens: number;
    readonly cached_tokens: number;
    readonly completion_tokens: number;
  };
}

export interface Answer {
  readonly head: AnswerHead;
  /** Row-major, `action_dim` values per row, only the rows that were asked for; in robot units, finite. */
  readonly rows: Float32Array;
}

/** The answer that a result becomes. Copies the rows, which the engine takes back; `timing` is called after that. */
export function answerOf(
  { served: { manifest }, rows: rowCount }: ObserveCommand,
  { sessionId, named, step }: Ticket,
  result: ChunkResult,
  generation: { readonly id: string; readonly created: number },
  timing: () => Timing,
): Answer {
  const { action, frames } = manifest;
  const rows = result.actions.slice(0, rowCount * result.columns);
  const head: AnswerHead = {
    ...generation,
    model: manifest.id,
    session_id: sessionId,
    step,
    dt: 1 / action.hz,
    action_dim: action.columns.length,
    action_space: action.space,
    // A request without session_id is always the first of its session.
    next_frames_per_camera: named ? frames.later : frames.first,
    timing_ms: timing(),
    ...(result.cacheReset ? { cache_reset: true } : {}),
    ...(result.clamped > 0 ? { clamped: result.clamped } : {}),
    usage: {
      prompt_tokens: result.promptTokens,
      cached_tokens: result.cachedTokens,
      completion_tokens: result.rows,
    },
  };
  return { head, rows };
}

/** What the inference is charged for. */
export function usageOf({ promptTokens, cachedTokens, rows }: ChunkResult): Usage {
  return { promptTokens, cachedTokens, completionTokens: rows };
}

export function toStored({ head, rows }: Answer): NeutralAnswer {
  return { head: JSON.stringify(head), rows: rowsBytes(rows) };
}

export function fromStored({ head, rows }: NeutralAnswer): Answer {
  // A copy: the store's bytes may begin anywhere in their buffer, float32 values must not.
  return { head: JSON.parse(head) as AnswerHead, rows: new Float32Array(rows.slice().buffer) };
}

/** The `f32` form of a chunk: little-endian float32, row-major. */
export function rowsBytes({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

export type Timing = Readonly<Record<(typeof STATIONS)[number], number>>;

/** What the times of one answer follow from. Instants are monotonic ms. */
export interface Instants {
  /** The last byte of the body, or the text message on a socket, had come. */
  readonly arrivedMs: number;
  /** The observation had been read and checked. */
  readonly begunMs: number;
  /** It had its permits, and the decoders were given the frames that they did not have. */
  readonly putMs: number;
  /** The engine was about to take the inference on. */
  readonly observedMs: number;
  readonly resultMs: number;
  readonly answerMs: number;
  /** The frames came in the observation's body: reading them out of it is part of their way to tensors. */
  readonly inBody: boolean;
  /** The decoders had all frames before the observation had its permits. */
  readonly early: boolean;
  /** What a drill added. */
  readonly drillMs: number;
}

type Micros = ChunkResult["micros"];

/** Monotonic ms when the model started. */
export function startMs(observedMs: number, { queue }: Micros): number {
  return observedMs + queue / 1000;
}

/** Milliseconds at microsecond resolution. Their sum is the time from `arrivedMs` to `answerMs`. */
export function timingOf(instants: Instants, micros: Micros): Timing {
  const { arrivedMs, begunMs, putMs, resultMs, answerMs, inBody, early, drillMs } = instants;
  const started = startMs(instants.observedMs, micros);
  const tensorsMs = started - micros.decoded / 1000;
  // Frames that were sent ahead may still be at the decoders when the observation comes, and are not waited for by admission.
  const decodingMs = Math.max(0, tensorsMs - (early ? arrivedMs : putMs));
  const waitedMs = started - arrivedMs;
  const decode = Math.min(waitedMs, decodingMs + (inBody ? begunMs - arrivedMs : 0));
  const nativeMs = (micros.prefill + micros.denoise + micros.encode) / 1000;
  // The native part has ended; this thread was at other work. A drill's delay stands between result and answer.
  const noticedMs = Math.max(0, resultMs - started - nativeMs);
  return {
    decode: rounded(decode),
    queue: rounded(waitedMs - decode),
    prefill: rounded(micros.prefill / 1000),
    denoise: rounded(micros.denoise / 1000 + drillMs),
    encode: rounded(micros.encode / 1000 + noticedMs + answerMs - resultMs - drillMs),
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** A result whose shape is not that of the model's chunk must not reach a robot. */
export function uncorrelated({ served }: ObserveCommand, { rows, columns }: ChunkResult): Failure | undefined {
  const { action } = served.manifest;
  if (rows === action.rows && columns === action.columns.length) return undefined;
  const message =
    "the engine's answer is not one to this observation; nothing was charged, connect again and repeat the observation";
  const detail = `a result of ${rows} x ${columns} instead of ${action.rows} x ${action.columns.length}`;
  return new Failure(ROBOT.engine_protocol_error, message, { detail });
}

/** Why a record was not made, for the log. */
export const REASONS = {
  known: "another service has answered this observation_id",
  not_held: "the held money had been given back",
} as const;

export function notRecorded(): Failure {
  const message = "the answer could not be recorded and was taken back, as if nothing ran; retry with backoff";
  return new Failure(EVERY.metering_unavailable, message, { retryAfterSeconds: 1 });
}

/** The deadline has passed, or the service ends, while the record is being made durable. */
export function outcomeUnknown({ observationId }: ObserveCommand): Failure {
  const [advice, param] =
    observationId === undefined
      ? ["the step may have been taken: start a new session, or ask without expected_step", {}]
      : ["repeat the same observation_id", { param: "observation_id" }];
  const message = `it is not known yet whether the answer's record is durable; ${advice}`;
  return new Failure(ROBOT.observation_unknown, message, { ...param, retryAfterSeconds: 1 });
}

/** How a chunk carries its rows: as JSON, or as bytes that follow it. */
export type ActionsFormat = "json" | "f32";

/** The action chunk as JSON text, with `lead`'s fields first. With `f32` it says how many rows there are. */
export function chunkText({ head, rows }: Answer, format: ActionsFormat = "json", lead: object = {}): string {
  const { session_id, step, dt, action_dim, action_space, next_frames_per_camera, timing_ms } = head;
  const before = JSON.stringify({ ...lead, session_id, step, dt, action_dim, action_space });
  // JSON leaves out what is undefined.
  const { cache_reset, clamped } = head;
  const after = JSON.stringify({ next_frames_per_camera, timing_ms, cache_reset, clamped });
  const count = rows.length / action_dim;
  const actions = format === "json" ? `"actions":${rowsText(rows, count, action_dim)}` : `"rows":${count}`;
  return `${before.slice(0, -1)},${actions},${after.slice(1)}`;
}

/** The `usage` object; cached tokens are part of the prompt's. */
export function usageObject({ prompt_tokens, cached_tokens, completion_tokens }: AnswerHead["usage"]) {
  return {
    prompt_tokens,
    prompt_tokens_details: { cached_tokens },
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
  };
}
