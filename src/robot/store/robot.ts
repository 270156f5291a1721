/** The domain of robots: sessions that were open, observations that were answered. */
import { SETTLE_DECLARE, SETTLE_SQL, settle, settlementOrder, settlementTransfer } from "../../charge/store/settle.ts";
import type { DomainOf, Hot, Slice } from "../../store/domain.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import type { AnsweredObservation, ChunkSettlement, ObservationKey, SessionKey } from "./records.ts";
import { chunksForget } from "./retention.ts";

/** Unix seconds of the session's last activity; undefined: it never opened, or that is forgotten. */
function* sessionLastAt(key: SessionKey): Steps<number | undefined> {
  const row = yield* first<{ last_at: bigint }>(
    "SELECT last_at FROM robot_sessions WHERE account_id = $accountId AND model = $model AND session_id = $sessionId",
    { ...key },
  );
  return row && Number(row.last_at);
}

function* observation(key: ObservationKey): Steps<AnsweredObservation | undefined> {
  const row = yield* first<{
    digest: Uint8Array;
    generationId: string;
    step: bigint | null;
    head: string | null;
    rows: Uint8Array | null;
  }>(
    `SELECT digest, generation_id AS "generationId", step, head, rows FROM observations
     WHERE account_id = $accountId AND model = $model AND session_id = $sessionId AND observation_id = $observationId`,
    { ...key },
  );
  if (!row) return undefined;
  const { digest, generationId, step, head, rows } = row;
  return {
    digest: new Uint8Array(digest),
    generationId,
    step: step === null ? null : Number(step),
    answer: head === null || rows === null ? undefined : { head, rows: new Uint8Array(rows) },
  };
}

/** A session that a connection opens is known from then on, also without a chunk; after its end the id answers 410. */
function* sessionOpen(session: SessionKey & { readonly at: number }): Steps<"kept"> {
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
 * meanwhile. Then nothing is kept.
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

/** The same as a function of PostgreSQL; one test file runs both. */
const settleChunkHot: Hot<ChunkSettlement> = {
  sql: `
DECLARE ${SETTLE_DECLARE}
  seen jsonb := o->'observation';
  s jsonb := o->'session';
  earlier text;
BEGIN
  PERFORM 1 FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  IF seen IS NOT NULL THEN
    INSERT INTO observations (account_id, model, session_id, observation_id, digest, generation_id, step, head, rows, at)
    VALUES (o->>'accountId', seen->>'model', seen->>'sessionId', seen->>'observationId', decode(seen->>'digest', 'base64'),
      o->>'chargeId', (seen->>'step')::bigint, seen->>'head', decode(seen->>'rows', 'base64'), (o->>'at')::bigint)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      SELECT generation_id INTO earlier FROM observations WHERE account_id = o->>'accountId' AND model = seen->>'model'
        AND session_id = seen->>'sessionId' AND observation_id = seen->>'observationId';
      RETURN CASE WHEN earlier = o->>'chargeId' THEN 'kept' ELSE 'known' END;
    END IF;
  END IF;
  ${SETTLE_SQL}
  IF r.id IS NULL THEN
    -- An observation is answered by a charge that was settled with it, and by no other.
    DELETE FROM observations WHERE account_id = o->>'accountId' AND model = seen->>'model'
      AND session_id = seen->>'sessionId' AND observation_id = seen->>'observationId';
    RETURN CASE WHEN EXISTS (SELECT 1 FROM charges WHERE id = o->>'chargeId' AND settled_at IS NOT NULL) THEN 'kept'
      ELSE 'not_held' END;
  END IF;
  IF s IS NOT NULL THEN
    INSERT INTO robot_sessions (account_id, model, session_id, last_at, replies_kept)
    VALUES (r.account_id, s->>'model', s->>'sessionId', (o->>'at')::bigint, 1)
    ON CONFLICT (account_id, model, session_id) DO UPDATE SET last_at = excluded.last_at, replies_kept = 1
      WHERE robot_sessions.last_at < excluded.last_at OR robot_sessions.replies_kept = 0;
  END IF;
  RETURN 'kept';
END`,
  order: ({ session, observation, ...settlement }) => ({
    ...settlementOrder(settlement),
    session,
    observation: observation && {
      model: observation.model,
      sessionId: observation.sessionId,
      observationId: observation.observationId,
      digest: observation.digest.toBase64(),
      step: observation.step,
      head: observation.answer?.head,
      rows: observation.answer?.rows.toBase64(),
    },
  }),
};

const reads = { sessionLastAt, observation };

const writes = { sessionOpen, settleChunk, chunksForget };

export const robot = {
  reads,
  writes,
  notDurable: [],
  hot: { settleChunk: settleChunkHot },
  books: { settleChunk: { outcome: "kept", transfer: settlementTransfer } },
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type RobotStore = Slice<typeof robot>;
