/**
 * Exactly once: an `observation_id` is inferred once, and its answer can be had again.
 *
 * The ids that are answered now are in memory. The store has what was answered, written in the same step as the session's activity and
 * before the answer leaves. A process that ends in between has sent no answer, so the id is free again.
 */
import { LIMITS } from "../limits.ts";
import { Failure } from "../std/failure.ts";
import type { Log } from "../std/log.ts";
import type { SeenClock } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { ROBOT } from "./errors.ts";
import type { NeutralAnswer, ObservationKey } from "./store/records.ts";
import type { RobotStore } from "./store/robot.ts";

/** The answer of an earlier request with the same id and content. */
export interface Replay {
  readonly kind: "replay";
  readonly generationId: string;
  /** null where the request had no `session_id`. */
  readonly step: number | null;
  readonly answer: NeutralAnswer;
}

/** The right to infer the observation, held until it is answered or has failed. */
export interface Claim {
  readonly kind: "claim";
  /** Later calls do nothing. */
  release(): void;
}

export class Replays {
  /** Digests of the observations that are being answered, by key. */
  private readonly pending = new Map<string, Uint8Array>();

  constructor(private readonly store: Pick<RobotStore, "observation">) {}

  /** Observations that are being answered. */
  get size(): number {
    return this.pending.size;
  }

  /**
   * `isFirst`: it was not asked for before, so the store need not be read. Failures: `idempotency_conflict`,
   * `observation_outcome_unknown` (409 while it runs, 503 when its result is gone or the store cannot say).
   */
  async claim(id: ObservationKey, digest: Uint8Array, isFirst = false): Promise<Claim | Replay | Failure> {
    const key = `${id.accountId}\n${id.model}\n${id.sessionId}\n${id.observationId}`;
    const other = this.pending.get(key);
    if (other)
      return sameBytes(other, digest) ? failure("observation_pending", RETRY) : failure("idempotency_conflict");
    this.pending.set(key, digest);
    const release = () => {
      // After the first call the key may be another request's.
      if (this.pending.get(key) === digest) this.pending.delete(key);
    };
    const answered = isFirst ? undefined : await this.store.observation(id);
    if (answered === undefined) return { kind: "claim", release };
    release();
    if (answered instanceof StoreDown)
      return failure("observation_unknown", { ...RETRY, detail: `store: ${answered.reason}` });
    if (!sameBytes(answered.digest, digest)) return failure("idempotency_conflict");
    const { generationId, step, answer } = answered;
    return answer ? { kind: "replay", generationId, step, answer } : failure("observation_lost");
  }
}

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

const RETRY = { retryAfterSeconds: 1 };

const MESSAGES = {
  idempotency_conflict:
    "this observation_id was used with other content; send a new id with new content, and a repeat unchanged",
  observation_pending: "the observation of this observation_id is still running; repeat the same request in a moment",
  observation_lost:
    "this observation was answered, but its result is no longer kept. It is not run again: go on with the next step or a new session",
  observation_unknown:
    "the record of observations does not answer: this observation_id may have been answered before; repeat the same request with backoff",
} as const;

function failure(code: keyof typeof MESSAGES, detail: ConstructorParameters<typeof Failure>[2] = {}): Failure {
  return new Failure(ROBOT[code], MESSAGES[code], { param: "observation_id", ...detail });
}

const WORDS = 512;
const BITS_MASK = WORDS * 32 - 1;
const PROBES = 5;

/**
 * The observation ids seen in one session, as a Bloom filter of fixed size. No false negatives; about one false positive in a
 * thousand after a thousand ids, which costs one look-up in the store.
 */
export class SeenIds {
  private readonly words = new Uint32Array(WORDS);

  /** Adds the id; whether it may have been added before. */
  see(id: string): boolean {
    const hash = BigInt(Bun.hash(id));
    const start = Number(hash & 0xffff_ffffn);
    // Odd, so that the probes hit different bits.
    const stride = Number(hash >> 32n) | 1;
    let seen = true;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const bit = (start + probe * stride) & BITS_MASK;
      const [word, mask] = [bit >>> 5, 1 << (bit & 31)];
      const before = this.words[word] ?? 0;
      if ((before & mask) === 0) seen = false;
      this.words[word] = before | mask;
    }
    return seen;
  }
}

/** Stored answers ten minutes after their session ended, all other records a day after. */
export async function forgetChunks(store: Pick<RobotStore, "chunksForget">, clock: SeenClock, log: Log): Promise<void> {
  const before = (ms: number) => Math.floor((clock.seenMs() - LIMITS.sessionIdleMs - ms) / 1000);
  const retention = { repliesBefore: before(LIMITS.replyKeptMs), recordsBefore: before(LIMITS.sessionEndedMs) };
  for (;;) {
    const outcome = await store.chunksForget(retention);
    if (outcome instanceof StoreDown) log.error("old records not forgotten", { reason: outcome.reason });
    if (outcome !== "more") return;
  }
}
