/** What chunks leave behind: sessions that were open, observations that were answered. */
import { settle } from "./money.ts";
import { changes, first, rows, type Steps, type Value } from "./steps.ts";
import type { AnsweredObservation, ChunkRecord, ObservationKey, Retention, SessionKey, StoredAnswer } from "./store.ts";

/** Rows that one `chunksForget` changes: other writes wait meanwhile, and a reply is some kilobytes. */
const FORGET_MAX = 256;

export function* sessionLastAt({ accountId, model, sessionId }: SessionKey): Steps<number | undefined> {
  const row = yield* first<{ last_at: bigint }>(
    "SELECT last_at FROM robot_sessions WHERE account_id = $1 AND model = $2 AND session_id = $3",
    accountId,
    model,
    sessionId,
  );
  return row && Number(row.last_at);
}

/** A session that a connection opens is known from then on, whether or not a chunk follows. */
export function* sessionOpen({ accountId, model, sessionId, at }: SessionKey & { readonly at: number }): Steps<"kept"> {
  yield* changes(
    `INSERT INTO robot_sessions (account_id, model, session_id, last_at, replies_kept) VALUES ($1, $2, $3, $4, 1)
     ON CONFLICT (account_id, model, session_id) DO UPDATE SET last_at = excluded.last_at, replies_kept = 1
     WHERE robot_sessions.last_at < excluded.last_at OR robot_sessions.replies_kept = 0`,
    accountId,
    model,
    sessionId,
    at,
  );
  return "kept";
}

interface AnsweredRow {
  readonly digest: Uint8Array;
  readonly generation_id: string;
  readonly step: bigint | null;
  readonly reply: string | null;
}

export function* observation(key: ObservationKey): Steps<AnsweredObservation | undefined> {
  const row = yield* first<AnsweredRow>(
    `SELECT digest, generation_id, step, reply FROM observations
     WHERE account_id = $1 AND model = $2 AND session_id = $3 AND observation_id = $4`,
    key.accountId,
    key.model,
    key.sessionId,
    key.observationId,
  );
  if (!row) return undefined;
  const step = row.step === null ? null : Number(row.step);
  return { digest: new Uint8Array(row.digest), generationId: row.generation_id, step, answer: fromText(row.reply) };
}

/** PostgreSQL has this in one statement: hot.ts. */
export function* settleChunk(chunk: ChunkRecord): Steps<"kept" | "known" | "not_held"> {
  const { session, observation: answered, at } = chunk;
  if (answered) {
    const known = yield* observation(answered);
    if (known) return known.generationId === chunk.runId ? "kept" : "known";
  }
  const settled = yield* settle(chunk);
  if (settled !== "settled") return settled === "again" ? "kept" : settled;
  if (answered) {
    yield* changes(
      `INSERT INTO observations (account_id, model, session_id, observation_id, digest, generation_id, step, reply, at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      answered.accountId,
      answered.model,
      answered.sessionId,
      answered.observationId,
      answered.digest ?? null,
      answered.generationId,
      answered.step,
      toText(answered.answer),
      at,
    );
  }
  if (session) yield* sessionOpen({ ...session, at });
  return "kept";
}

const KEY = "account_id, model, session_id, observation_id";
const OF_SESSION = "account_id, model, session_id";
const SESSIONS = `(SELECT value->>'accountId' AS account_id, value->>'model' AS model, value->>'sessionId' AS session_id
  FROM json_array_elements($1::text::json)) AS gone`;
const EMPTY = `UPDATE observations SET reply = NULL WHERE (${KEY})`;
const REMOVE = `DELETE FROM observations WHERE (${KEY})`;

/** First the replies of quiet sessions, then the records of old ones, then what stands without a session; `FORGET_MAX` rows in all. */
export function* chunksForget({ repliesBefore, recordsBefore }: Retention): Steps<"done" | "more"> {
  const left = { rows: FORGET_MAX };
  yield* forgetSessions(left, "replies_kept = 1 AND last_at < $1", repliesBefore, {
    rows: EMPTY,
    which: " WHERE reply IS NOT NULL",
    end: "UPDATE robot_sessions SET replies_kept = 0",
  });
  yield* forgetSessions(left, "replies_kept = 0 AND last_at < $1", recordsBefore, {
    rows: REMOVE,
    which: "",
    end: "DELETE FROM robot_sessions",
  });
  const alone = (which: string) => `IN (SELECT ${KEY} FROM observations WHERE session_id = '' AND ${which} ORDER BY at`;
  if (left.rows > 0) yield* limited(left, `${EMPTY} ${alone("reply IS NOT NULL AND at < $1")}`, repliesBefore);
  if (left.rows > 0) yield* limited(left, `${REMOVE} ${alone("at < $1")}`, recordsBefore);
  return left.rows <= 0 ? "more" : "done";
}

function* forgetSessions(
  left: { rows: number },
  quiet: string,
  before: number,
  texts: { readonly rows: string; readonly which: string; readonly end: string },
): Steps<void> {
  // Each by one node only; a chunk of such a session waits for the end of this.
  const sessions = yield* rows<SessionKey>(
    `SELECT account_id AS "accountId", model, session_id AS "sessionId" FROM robot_sessions
     WHERE ${quiet} ORDER BY last_at LIMIT ${FORGET_MAX} FOR NO KEY UPDATE SKIP LOCKED`,
    before,
  );
  if (left.rows <= 0 || sessions.length === 0) return;
  const these = JSON.stringify(sessions);
  yield* limited(
    left,
    `${texts.rows} IN (SELECT ${KEY} FROM observations JOIN ${SESSIONS} USING (${OF_SESSION})${texts.which}`,
    these,
  );
  // With room left there was nothing more of these sessions.
  if (left.rows > 0) {
    left.rows -= yield* changes(`${texts.end} WHERE (${OF_SESSION}) IN (SELECT ${OF_SESSION} FROM ${SESSIONS})`, these);
  }
}

/** The statement, open at its end, for as many rows as are left. */
function* limited(left: { rows: number }, text: string, ...values: readonly Value[]): Steps<void> {
  left.rows -= yield* changes(`${text} LIMIT ${left.rows})`, ...values);
}

export function toText(answer: StoredAnswer | undefined): string | null {
  return answer === undefined ? null : `${answer.head}\n${Buffer.from(answer.rows).toString("base64")}`;
}

function fromText(text: string | null): StoredAnswer | undefined {
  if (text === null) return undefined;
  const [head = "", rows = ""] = text.split("\n");
  return { head, rows: new Uint8Array(Buffer.from(rows, "base64")) };
}
