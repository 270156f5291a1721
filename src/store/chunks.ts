/** What chunks leave behind: sessions that were open, observations that were answered. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { changed, query } from "./statement.ts";
import type { AnsweredObservation, ChunkRecord, Reads, Retention, SessionKey, Writes } from "./store.ts";

/** Rows that one `chunksForget` changes: other writes wait meanwhile, and a reply is some kilobytes. */
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

function keep(db: Database, { session, observation, at }: ChunkRecord): "kept" | "known" {
  const added =
    !observation ||
    changed(
      db,
      `INSERT INTO observations
         (account_id, model, session_id, observation_id, digest, generation_id, step, reply, at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
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
  if (!added) return "known";
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
  return "kept";
}

/** First the replies of quiet sessions, then the records of old ones, then what stands without a session; `FORGET_MAX` rows in all. */
function forget(db: Database, { repliesBefore, recordsBefore }: Retention): "done" | "more" {
  let left = FORGET_MAX;
  const run = (shared: string, ...values: SQLQueryBindings[]) => {
    const count = query(db, `${shared} LIMIT ${left})`).run(...values).changes;
    left -= count;
    return count;
  };
  const ofSessions = (which: string, before: number, rows: string, end: string) => {
    for (const { accountId, model, sessionId } of quietSessions(db, which, before)) {
      if (left <= 0) return;
      run(
        `${rows} IN (SELECT ${KEY} FROM observations WHERE ${OF_SESSION}${rows.startsWith("UPDATE") ? " AND reply IS NOT NULL" : ""}`,
        accountId,
        model,
        sessionId,
      );
      // With room left there was nothing more of this session.
      if (left > 0) left -= Number(changed(db, `${end} WHERE ${OF_SESSION}`, accountId, model, sessionId));
    }
  };
  const [empty, remove] = [
    `UPDATE observations SET reply = NULL WHERE (${KEY})`,
    `DELETE FROM observations WHERE (${KEY})`,
  ];
  ofSessions("replies_kept = 1 AND last_at < $1", repliesBefore, empty, "UPDATE robot_sessions SET replies_kept = 0");
  ofSessions("last_at < $1", recordsBefore, remove, "DELETE FROM robot_sessions");
  const alone = (which: string) => `IN (SELECT ${KEY} FROM observations WHERE session_id = '' AND ${which} ORDER BY at`;
  if (left > 0) run(`${empty} ${alone("reply IS NOT NULL AND at < $1")}`, repliesBefore);
  if (left > 0) run(`${remove} ${alone("at < $1")}`, recordsBefore);
  return left <= 0 ? "more" : "done";
}

const KEY = "account_id, model, session_id, observation_id";
const OF_SESSION = "account_id = $1 AND model = $2 AND session_id = $3";

function quietSessions(db: Database, which: string, before: number): SessionKey[] {
  return query<SessionKey>(
    db,
    `SELECT account_id AS "accountId", model, session_id AS "sessionId" FROM robot_sessions
     WHERE ${which} ORDER BY last_at LIMIT ${FORGET_MAX}`,
  ).all(before);
}
