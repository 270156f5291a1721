/**
 * The state machine of one robot session: pure functions, no clock, no table.
 *
 *   new ──begin──▶ busy(opening) ──commit──▶ idle(step 1) ──begin──▶ busy ──commit──▶ idle(step + 1)
 *                     └──fail──▶ new                                  └──fail──▶ idle(step unchanged)
 *   new ──open──▶ idle(step 0)
 *   idle ──60 s, or end──▶ expired          busy ──end──▶ busy(ending) ──commit or fail──▶ expired, or new if it never opened
 */
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { ROBOT } from "../errors.ts";

export interface Idle {
  readonly kind: "idle";
  /** Index of the next chunk; 0 if a connection has opened the session and no chunk was answered yet. */
  readonly step: number;
  readonly instruction: string;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}

export interface Busy {
  readonly kind: "busy";
  /** Index of the chunk that is computed. */
  readonly step: number;
  readonly instruction: string;
  /** The state to return to if the chunk fails; undefined for the session's first request. */
  readonly before: Idle | undefined;
  /** The client ended the session while the chunk is computed. */
  readonly ending: boolean;
}

export type SessionState = { readonly kind: "new" } | Idle | Busy | { readonly kind: "expired" };

export interface SessionRequest {
  readonly instruction: string;
  readonly expectedStep: number | undefined;
  /** Frames in all, or of each camera. */
  readonly images: number | readonly number[];
  /** The session's last chunk was asked for with another key. */
  readonly otherDriver?: boolean;
}

/** Images that a request must carry: cameras × frames per camera. */
export interface ImageCounts {
  readonly first: number;
  readonly later: number;
}

const START_ANEW = "start a new session with a new session_id and its first frames";

/** The checks of the session stage in the contract's order; the busy state when all pass. */
export function begin(state: SessionState, request: SessionRequest, counts: ImageCounts): Busy | Failure {
  const { instruction, expectedStep, images, otherDriver = false } = request;
  if (state.kind === "expired" || (state.kind === "busy" && state.ending)) return ended();
  if (state.kind === "busy") return busyElsewhere();
  if (state.kind === "new" && (expectedStep ?? 0) > 0) {
    const message = `expected_step is ${expectedStep}, but no session of this id is alive; ${START_ANEW}`;
    return new Failure(ROBOT.session_expired, message);
  }
  const before = state.kind === "idle" ? state : undefined;
  if (before && before.instruction !== instruction) return otherInstruction();
  const step = before?.step ?? 0;
  const conflict =
    stepConflict(expectedStep, step) ??
    (otherDriver && expectedStep === undefined ? twoDrivers(step) : undefined) ??
    wrongCount(images, step === 0 ? counts.first : counts.later);
  return conflict ?? { kind: "busy", step, instruction, before, ending: false };
}

/** A connection asks to hold the session; the idle state if it may. */
export function open(state: SessionState, instruction: string, nowMs: number): Idle | Failure {
  if (state.kind === "expired" || (state.kind === "busy" && state.ending)) return ended();
  if (state.kind === "busy") return busyElsewhere();
  if (state.kind === "new") return { kind: "idle", step: 0, instruction, sinceMs: nowMs };
  return state.instruction === instruction ? { ...state, sinceMs: nowMs } : otherInstruction();
}

/** The session stage of a request without `session_id`, which is always a first chunk. */
export function beginAlone(request: SessionRequest, counts: ImageCounts): Failure | undefined {
  return stepConflict(request.expectedStep, 0) ?? wrongCount(request.images, counts.first);
}

/** The chunk is durable and goes to the client. */
export function commit(busy: Busy, nowMs: number): SessionState {
  if (busy.ending) return { kind: "expired" };
  return { kind: "idle", step: busy.step + 1, instruction: busy.instruction, sinceMs: nowMs };
}

/** The chunk failed: the step stays, and a session that never opened is new again. */
export function fail(busy: Busy, nowMs: number): SessionState {
  if (busy.before === undefined) return { kind: "new" };
  return busy.ending ? { kind: "expired" } : { ...busy.before, sinceMs: nowMs };
}

/** The client ends the session; a chunk that is computed is still answered. */
export function end(state: SessionState): SessionState {
  if (state.kind === "idle") return { kind: "expired" };
  return state.kind === "busy" ? { ...state, ending: true } : state;
}

/** Expires a session that idled too long. */
export function pass(state: SessionState, nowMs: number): SessionState {
  return state.kind === "idle" && nowMs >= expiresMs(state) ? { kind: "expired" } : state;
}

/** Monotonic milliseconds. */
export function expiresMs(state: Idle): number {
  return state.sinceMs + LIMITS.sessionIdleMs;
}

function stepConflict(expectedStep: number | undefined, step: number): Failure | undefined {
  if (expectedStep === undefined || expectedStep === step) return undefined;
  const message = `expected_step is ${expectedStep}, but the next step is ${step}; nothing ran, continue with step ${step}`;
  return new Failure(ROBOT.session_step_conflict, message, { param: "expected_step" });
}

/** Two robots under one name would each get chunks that the other's observations had a part in. */
function twoDrivers(step: number): Failure {
  const message = `another API key asked for this session's last chunk, and the request has no expected_step: are two robots using one session_id? Nothing ran; use a session_id of your own, or send expected_step, which is ${step} now`;
  return new Failure(ROBOT.session_step_conflict, message, { param: "expected_step" });
}

export function ended(): Failure {
  return new Failure(ROBOT.session_expired, `this session has ended or its state is gone; ${START_ANEW}`);
}

export function busyElsewhere(): Failure {
  const message =
    "another request or connection has this session; wait until it is done and send one request per session at a time";
  return new Failure(ROBOT.session_busy, message);
}

function otherInstruction(): Failure {
  const message =
    "the instruction differs from the one of the session's first request; keep it identical, or start a new session";
  return new Failure(ROBOT.instruction_changed, message);
}

function wrongCount(images: number | readonly number[], expected: number): Failure | undefined {
  const cameras = typeof images === "number" ? [images] : images;
  if (cameras.every((count) => count * cameras.length === expected)) return undefined;
  const message = `the request has ${cameras.join(" + ")} images, this step needs ${expected} in all, as many of each camera; send the frames that next_frames_per_camera names`;
  return new Failure(ROBOT.image_count_mismatch, message, { param: "messages" });
}
