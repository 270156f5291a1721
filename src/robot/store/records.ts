/** What the store keeps of robots: sessions that were open, observations that were answered. */
import type { Settlement } from "../../charge/store/records.ts";

/** A robot session; requests without a `session_id` have the empty one. */
export interface SessionKey {
  readonly accountId: string;
  readonly model: string;
  readonly sessionId: string;
}

export interface ObservationKey extends SessionKey {
  readonly observationId: string;
}

/** An answer in no transport's form. */
export interface NeutralAnswer {
  /** A JSON object: all but the rows. */
  readonly head: string;
  /** Little-endian float32, row-major; in a separate buffer, since a copy to another thread takes the whole buffer. */
  readonly rows: Uint8Array;
}

/** An observation that was answered. */
export interface AnsweredObservation {
  /** SHA-256 of the canonical request, 32 bytes. */
  readonly digest: Uint8Array;
  readonly generationId: string;
  /** Zero-based chunk index; null where the request had no `session_id`. */
  readonly step: number | null;
  /** undefined once it is no longer retained. */
  readonly answer: NeutralAnswer | undefined;
}

/** What is stored of a chunk, with its price. */
export interface ChunkSettlement extends Settlement {
  readonly session: SessionKey | undefined;
  readonly observation: (ObservationKey & AnsweredObservation) | undefined;
}

/** Replies of sessions that were last active before, and records of those that were last active before. */
export interface Retention {
  readonly repliesBefore: number;
  readonly recordsBefore: number;
}
