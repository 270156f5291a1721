/**
 * The store as the service sees it: a closed list of operations, one per purpose. No SQL leaves this folder.
 * Operations never throw; what the store cannot do is a `StoreDown`.
 */

export interface Account {
  readonly id: string;
  readonly email: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** An API key at rest: its public id and the SHA-256 of the whole key. */
export interface KeyRecord {
  readonly publicId: string;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
  readonly accountId: string;
  readonly name: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Unix seconds; null while the key is valid. */
  readonly revokedAt: number | null;
}

/** A robot session; requests without a `session_id` stand under the empty one. */
export interface SessionKey {
  readonly accountId: string;
  readonly model: string;
  readonly sessionId: string;
}

export interface ObservationKey extends SessionKey {
  readonly observationId: string;
}

/** An observation that was answered. */
export interface AnsweredObservation {
  /** SHA-256 of the canonical request, 32 bytes. */
  readonly digest: Uint8Array;
  readonly generationId: string;
  /** Zero-based chunk index; null where the request had no `session_id`. */
  readonly step: number | null;
  /** The reply's body; null once it is no longer retained. */
  readonly reply: string | null;
}

/** What a chunk leaves behind, in one step: its session's activity and the answer to its observation. */
export interface ChunkRecord {
  readonly session: SessionKey | undefined;
  readonly observation: (ObservationKey & AnsweredObservation) | undefined;
  /** Unix seconds. */
  readonly at: number;
}

/** Unix seconds: replies of sessions that were last active before, and records of those that were last active before. */
export interface Retention {
  readonly repliesBefore: number;
  readonly recordsBefore: number;
}

/** The store did not do what was asked; `reason` is for the log, never for a client. */
export class StoreDown {
  constructor(readonly reason: string) {}
}

/** Operations that change something. Each is one atomic step; all of these are durable when they resolve. */
export interface Writes {
  accountAdd(account: Account): "added" | "email_taken";
  keyAdd(key: KeyRecord): "added" | "id_taken" | "account_unknown";
  keyRevoke(revocation: { publicId: string; revokedAt: number }): "revoked" | "unknown";
  /** `known`: the observation was answered before; then nothing is kept. */
  chunkKeep(chunk: ChunkRecord): "kept" | "known";
  /** Forgets a bounded part of what is older; "more" when there may be more of it. */
  chunksForget(retention: Retention): "done" | "more";
}

export interface Reads {
  accountByEmail(email: string): Account | undefined;
  keyByPublicId(publicId: string): KeyRecord | undefined;
  /** When the session was last active, Unix seconds; undefined: it never opened, or that is forgotten. */
  sessionLastAt(session: SessionKey): number | undefined;
  observation(key: ObservationKey): AnsweredObservation | undefined;
}

/** The same operations as a caller has them: asynchronous, and able to say that the store is down. */
type Asynchronous<T> = {
  [K in keyof T]: T[K] extends (argument: infer A) => infer R ? (argument: A) => Promise<R | StoreDown> : never;
};

export interface Store extends Asynchronous<Writes>, Asynchronous<Reads> {
  /** Undefined when reading and writing both work. */
  ping(): Promise<StoreDown | undefined>;
  /** Ends what waits, then closes; later calls answer `StoreDown`. */
  close(): Promise<void>;
}
