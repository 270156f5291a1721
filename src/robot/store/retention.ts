/** Deletes old answers, observations and sessions, in bounded parts. */
import { changes, rows, type Steps, type Value } from "../../store/steps.ts";
import type { Retention, SessionKey } from "./records.ts";

/** Rows that one `chunksForget` changes: other writes wait meanwhile, and a reply is some kilobytes. */
const FORGET_MAX = 256;

const KEY = "account_id, model, session_id, observation_id";
const OF_SESSION = "account_id, model, session_id";
const SESSIONS = `(SELECT value->>'accountId' AS account_id, value->>'model' AS model, value->>'sessionId' AS session_id
  FROM json_array_elements($1::text::json)) AS gone`;
const EMPTY = `UPDATE observations SET head = NULL, rows = NULL WHERE (${KEY})`;
const REMOVE = `DELETE FROM observations WHERE (${KEY})`;

/** First the replies of quiet sessions, then the records of old ones, then what stands without a session; `FORGET_MAX` rows in all. */
export function* chunksForget({ repliesBefore, recordsBefore }: Retention): Steps<"done" | "more"> {
  const left = { rows: FORGET_MAX };
  yield* forgetSessions(left, "replies_kept = 1 AND last_at < $1", repliesBefore, {
    rows: EMPTY,
    which: " WHERE head IS NOT NULL",
    end: "UPDATE robot_sessions SET replies_kept = 0",
  });
  yield* forgetSessions(left, "replies_kept = 0 AND last_at < $1", recordsBefore, {
    rows: REMOVE,
    which: "",
    end: "DELETE FROM robot_sessions",
  });
  const alone = (which: string) => `IN (SELECT ${KEY} FROM observations WHERE session_id = '' AND ${which} ORDER BY at`;
  if (left.rows > 0) yield* limited(left, `${EMPTY} ${alone("head IS NOT NULL AND at < $1")}`, repliesBefore);
  if (left.rows > 0) yield* limited(left, `${REMOVE} ${alone("at < $1")}`, recordsBefore);
  return left.rows <= 0 ? "more" : "done";
}

function* forgetSessions(
  left: { rows: number },
  quiet: string,
  before: number,
  texts: { readonly rows: string; readonly which: string; readonly end: string },
): Steps<void> {
  // SKIP LOCKED: each session by one node only. A chunk of such a session waits until this has ended.
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
  // The limit was not reached, so these sessions have no more rows.
  if (left.rows > 0) {
    left.rows -= yield* changes(`${texts.end} WHERE (${OF_SESSION}) IN (SELECT ${OF_SESSION} FROM ${SESSIONS})`, these);
  }
}

/** The statement, open at its end, for as many rows as are left. */
function* limited(left: { rows: number }, text: string, ...values: readonly Value[]): Steps<void> {
  left.rows -= yield* changes(`${text} LIMIT ${left.rows})`, ...values);
}
