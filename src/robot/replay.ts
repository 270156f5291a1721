/**
 * Exactly once: an `observation_id` runs once, and its answer can be had again.
 *
 * Which ids run now is in memory; what was answered is in the store, written in the same step as the session's activity and
 * before the answer leaves. A process that ends in between has answered nobody, so the id is free again.
 */
import { Failure } from "../std/failure.ts";
import { StoreDown } from "../store/store.ts";
import { ROBOT } from "./errors.ts";
import type { RunningIds } from "./exclusive.ts";
import type { AnsweredObservation, NeutralAnswer, ObservationKey } from "./store/records.ts";
import type { RobotStore } from "./store/robot.ts";

/** The answer that an earlier request with the same id and content got. */
export interface Replay {
  readonly kind: "replay";
  readonly generationId: string;
  /** null where the request had no `session_id`. */
  readonly step: number | null;
  readonly answer: NeutralAnswer;
}

/** The right to run the observation; held until it is answered or has failed. */
export interface Claim {
  readonly kind: "claim";
  release(): void;
}

export class Replays {
  constructor(
    private readonly store: Pick<RobotStore, "observation">,
    private readonly running: RunningIds,
  ) {}

  /** Observations that run now. */
  get size(): number {
    return this.running.size;
  }

  /**
   * `isFirst`: nobody asked for it before, so the store need not be asked. Failures: `idempotency_conflict`,
   * `observation_outcome_unknown` (409 while it runs, 503 when its result is gone or the store cannot say).
   */
  async claim(id: ObservationKey, digest: Uint8Array, isFirst = false): Promise<Claim | Replay | Failure> {
    const claimed = await this.running.claim(
      `${id.accountId}\n${id.model}\n${id.sessionId}\n${id.observationId}`,
      digest,
    );
    if (claimed.kind === "taken") return sameBytes(claimed.digest, digest) ? pending() : conflict();
    const answered = isFirst ? undefined : await this.store.observation(id);
    if (answered === undefined) return claimed;
    claimed.release();
    return answered instanceof StoreDown ? unknown(answered) : replay(answered, digest);
  }
}

function replay({ digest: first, generationId, step, answer }: AnsweredObservation, digest: Uint8Array) {
  if (!sameBytes(first, digest)) return conflict();
  return answer === undefined ? lost() : ({ kind: "replay", generationId, step, answer } as const);
}

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

const PARAM = { param: "observation_id" } as const;

function conflict(): Failure {
  return new Failure(
    ROBOT.idempotency_conflict,
    "this observation_id was used with other content; send a new id with new content, and a repeat unchanged",
    PARAM,
  );
}

function pending(): Failure {
  return new Failure(
    ROBOT.observation_pending,
    "the observation of this observation_id is still running; repeat the same request in a moment",
    { ...PARAM, retryAfterSeconds: 1 },
  );
}

function lost(): Failure {
  return new Failure(
    ROBOT.observation_lost,
    "this observation was answered, but its result is no longer kept. It is not run again: go on with the next step or a new session",
    PARAM,
  );
}

/** This request ran nothing, but an earlier one with its id may have: only the record could tell. */
function unknown({ reason }: StoreDown): Failure {
  return new Failure(
    ROBOT.observation_unknown,
    "the record of observations does not answer, so nobody knows whether this observation_id was answered before; repeat the same request with backoff",
    { ...PARAM, retryAfterSeconds: 1, detail: `store: ${reason}` },
  );
}
