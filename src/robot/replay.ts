/**
 * Exactly once: an `observation_id` runs once, and its answer can be had again.
 *
 * What runs now stands in memory; what was answered is in the store, written in the same step as the session's activity and
 * before the answer leaves. A process that ends in between has answered nobody, so the id is free again.
 */
import { Failure } from "../error/core.ts";
import { EVERY } from "../error/every-route.ts";
import { ROBOT } from "../error/robot.ts";
import type { AnsweredObservation, ObservationKey } from "../store/robot/records.ts";
import type { RobotStore } from "../store/robot/robot.ts";
import { StoreDown } from "../store/store.ts";

/** The answer that an earlier request with the same id and content got. */
export interface Replay {
  readonly kind: "replay";
  readonly generationId: string;
  /** null where the request had no `session_id`. */
  readonly step: number | null;
  readonly reply: string;
}

/** The right to run the observation; held until it is answered or has failed. */
export interface Claim {
  readonly kind: "claim";
  release(): void;
}

export class Observations {
  /** Digest of each observation that runs, by key. */
  private readonly running = new Map<string, Uint8Array>();

  constructor(private readonly store: Pick<RobotStore, "observation">) {}

  /** Observations that run now. */
  get size(): number {
    return this.running.size;
  }

  /**
   * `isFirst`: nobody asked for it before, so the store need not be asked. Failures: `idempotency_conflict`,
   * `observation_outcome_unknown` (409 while it runs, 503 when its result is gone).
   */
  async claim(id: ObservationKey, digest: Uint8Array, isFirst = false): Promise<Claim | Replay | Failure> {
    const key = `${id.accountId}\n${id.model}\n${id.sessionId}\n${id.observationId}`;
    const other = this.running.get(key);
    if (other) return sameBytes(other, digest) ? pending() : conflict();
    this.running.set(key, digest);
    // Given back more than once, it must not take what somebody else has claimed meanwhile.
    const release = () => {
      if (this.running.get(key) === digest) this.running.delete(key);
    };
    const answered = isFirst ? undefined : await this.store.observation(id);
    if (answered === undefined) return { kind: "claim", release };
    release();
    return answered instanceof StoreDown ? unknown(answered) : replay(answered, digest);
  }
}

function replay({ digest: first, generationId, step, answer }: AnsweredObservation, digest: Uint8Array) {
  // An older version may have answered it, whose digests were of another form: then the repeat gets the stored answer.
  if (first !== undefined && !sameBytes(first, digest)) return conflict();
  return answer === undefined ? lost() : ({ kind: "replay", generationId, step, reply: answer.head } as const);
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
    PARAM,
  );
}

function lost(): Failure {
  return new Failure(
    ROBOT.observation_lost,
    "this observation was answered, but its result is no longer kept; it is not run again, go on with the next step or a new session",
    PARAM,
  );
}

function unknown(down: StoreDown): Failure {
  return new Failure(
    EVERY.metering_unavailable,
    "the record of observations does not answer, nothing ran; retry the same request with backoff",
    { retryAfterSeconds: 1, detail: `store: ${down.reason}` },
  );
}
