/**
 * Where the time of one chunk went (contract section 2, `timing_ms`): from the moment that its observation was there to its
 * answer, without a gap. The native library times its own stations; what lies between these is timed here.
 */
import type { ChunkResult, STATIONS } from "../engine/engine.ts";

export type Timing = Readonly<Record<(typeof STATIONS)[number], number>>;

/** Instants of one attempt, monotonic ms. */
export interface Instants {
  /** The observation was there: the last byte of its body, or its text message on a socket. */
  readonly arrivedMs: number;
  /** It had been read and checked. */
  readonly begunMs: number;
  /** It had its slots, and the decoders were given the frames that they did not have. */
  readonly putMs: number;
  /** Right before the engine took the run on. */
  readonly observedMs: number;
  /** The run's result was here. */
  readonly resultMs: number;
  /** The answer was made of it. */
  readonly answerMs: number;
}

export interface Facts {
  /** The frames came in the observation's body: reading them out of it is part of their way to tensors. */
  readonly inBody: boolean;
  /** The decoders had all frames before the observation had its slots. */
  readonly early: boolean;
  /** What a drill added. */
  readonly drillMs: number;
}

type Micros = ChunkResult["micros"];

/** When the model started, monotonic ms. */
export function startMs(observedMs: number, { queue }: Micros): number {
  return observedMs + queue / 1000;
}

/** Milliseconds at microsecond resolution. Their sum is the time from `arrivedMs` to `answerMs`. */
export function timingOf(instants: Instants, micros: Micros, { inBody, early, drillMs }: Facts): Timing {
  const { arrivedMs, begunMs, putMs, resultMs, answerMs } = instants;
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
