/** The settlement of a chunk as a function of PostgreSQL; its steps for SQLite are in robot.ts; one test file runs both. */
import { SETTLE_DECLARE, SETTLE_SQL, settlementOrder } from "../../charge/store/settle.ts";
import type { Hot } from "../../store/domain.ts";
import type { ChunkSettlement } from "./records.ts";

export const settleChunk: Hot<ChunkSettlement> = {
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
