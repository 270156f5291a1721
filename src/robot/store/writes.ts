/** Writes of robot sessions and observations. */
import { settle } from "../../charge/store/settle.ts";
import { changes, type Steps } from "../../store/steps.ts";
import { observation } from "./reads.ts";
import type { ChunkSettlement, SessionKey } from "./records.ts";

export * from "./retention.ts";

/** A session that a connection opens is known from then on, also without a chunk; after its end the id answers 410. */
export function* sessionOpen(session: SessionKey & { readonly at: number }): Steps<"kept"> {
  yield* changes(
    `INSERT INTO robot_sessions (account_id, model, session_id, last_at, replies_kept)
     VALUES ($accountId, $model, $sessionId, $at, 1)
     ON CONFLICT (account_id, model, session_id) DO UPDATE SET last_at = excluded.last_at, replies_kept = 1
     WHERE robot_sessions.last_at < excluded.last_at OR robot_sessions.replies_kept = 0`,
    { ...session },
  );
  return "kept";
}

/**
 * Price, session and answer in one step. `known`: the observation was answered before; `not_held`: the money was given back
 * meanwhile. Then nothing is kept. PostgreSQL has this in one statement (hot.ts).
 */
export function* settleChunk(chunk: ChunkSettlement): Steps<"kept" | "known" | "not_held"> {
  const { session, observation: answered, chargeId, at } = chunk;
  const { answer, ...fields } = answered ?? {};
  if (answered) {
    const added = yield* changes(
      `INSERT INTO observations (account_id, model, session_id, observation_id, digest, generation_id, step, head, rows, at)
       VALUES ($accountId, $model, $sessionId, $observationId, $digest, $generationId, $step, $head, $rows, $at)
       ON CONFLICT DO NOTHING`,
      { ...fields, head: answer?.head, rows: answer?.rows, at },
    );
    if (added === 0) return (yield* observation(answered))?.generationId === chargeId ? "kept" : "known";
  }
  const settled = yield* settle(chunk);
  if (settled === "settled") {
    if (session) yield* sessionOpen({ ...session, at });
    return "kept";
  }
  // An observation is answered by a charge that was settled with it, and by no other.
  const text = `DELETE FROM observations
     WHERE account_id = $accountId AND model = $model AND session_id = $sessionId AND observation_id = $observationId`;
  if (answered) yield* changes(text, fields);
  return settled === "again" ? "kept" : settled;
}
