/** What chunks leave behind: sessions that were open, observations that were answered. */
import type { Database } from "bun:sqlite";
import { changed, query } from "./statement.ts";
import type { AnsweredObservation, ChunkRecord, Reads, Retention, SessionKey, Writes } from "./store.ts";

/** Sessions, and observations without one, that one `chunksForget` looks at: other writes wait meanwhile. */
const FORGET_MAX = 256;

export function chunkWrites(db: Database): Pick<Writes, "chunkKeep" | "chunksForget"> {
  return {
    chunkKeep: (chunk) => keep(db, chunk),
    chunksForget: (retention) => forget(db, retention),
  };
}

export function chunkReads(db: Database): Pick<Reads, "sessionLastAt" | "observation"> {
  return {
    sessionLastAt: ({ accountId, model, sessionId }) =>
      query<{ lastAt: number }>(
        db,
        `SELECT last_at AS "lastAt" FROM robot_sessions WHERE account_id = $1 AND model = $2 AND session_id = $3`,
      ).get(accountId, model, sessionId)?.lastAt,

    observation: ({ accountId, model, sessionId, observationId }) =>
      query<AnsweredObservation>(
        db,
        `SELECT digest, generation_id AS "generationId", step, reply FROM observations
         WHERE account_id = $1 AND model = $2 AND session_id = $3 AND observation_id = $4`,
      ).get(accountId, model, sessionId, observationId) ?? undefined,
  };
}

function keep(db: Database, { session, observation, at }: ChunkRecord): "kept" {
  if (session) {
    changed(
      db,
      `INSERT INTO robot_sessions (account_id, model, session_id, last_at, replies_kept) VALUES ($1, $2, $3, $4, 1)
       ON CONFLICT (account_id, model, session_id) DO UPDATE SET last_at = excluded.last_at, replies_kept = 1`,
      session.accountId,
      session.model,
      session.sessionId,
      at,
    );
  }
  if (observation) {
    changed(
      db,
      `INSERT INTO observations
         (account_id, model, session_id, observation_id, digest, generation_id, step, reply, at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      observation.accountId,
      observation.model,
      observation.sessionId,
      observation.observationId,
      observation.digest,
      observation.generationId,
      observation.step,
      observation.reply,
      at,
    );
  }
  return "kept";
}

function forget(db: Database, { repliesBefore, recordsBefore }: Retention): "done" | "more" {
  const quiet = quietSessions(db, "replies_kept = 1 AND last_at < $1", repliesBefore);
  for (const { accountId, model, sessionId } of quiet) {
    const key = [accountId, model, sessionId];
    changed(db, `UPDATE observations SET reply = NULL WHERE ${OF_SESSION} AND reply IS NOT NULL`, ...key);
    changed(db, `UPDATE robot_sessions SET replies_kept = 0 WHERE ${OF_SESSION}`, ...key);
  }
  const old = quietSessions(db, "last_at < $1", recordsBefore);
  for (const { accountId, model, sessionId } of old) {
    const key = [accountId, model, sessionId];
    changed(db, `DELETE FROM observations WHERE ${OF_SESSION}`, ...key);
    changed(db, `DELETE FROM robot_sessions WHERE ${OF_SESSION}`, ...key);
  }
  const alone = (which: string) =>
    `(account_id, model, session_id, observation_id) IN (
       SELECT account_id, model, session_id, observation_id FROM observations
       WHERE session_id = '' AND ${which} ORDER BY at LIMIT ${FORGET_MAX})`;
  const emptied = query(db, `UPDATE observations SET reply = NULL WHERE ${alone("reply IS NOT NULL AND at < $1")}`);
  const deleted = query(db, `DELETE FROM observations WHERE ${alone("at < $1")}`);
  const counts = [quiet.length, old.length, emptied.run(repliesBefore).changes, deleted.run(recordsBefore).changes];
  return counts.some((count) => count >= FORGET_MAX) ? "more" : "done";
}

const OF_SESSION = "account_id = $1 AND model = $2 AND session_id = $3";

function quietSessions(db: Database, which: string, before: number): SessionKey[] {
  return query<SessionKey>(
    db,
    `SELECT account_id AS "accountId", model, session_id AS "sessionId" FROM robot_sessions
     WHERE ${which} ORDER BY last_at LIMIT ${FORGET_MAX}`,
  ).all(before);
}
