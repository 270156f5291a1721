/** Reads of robot sessions and observations. */
import { first, type Steps } from "../../store/steps.ts";
import type { AnsweredObservation, ObservationKey, SessionKey } from "./records.ts";

/** When the session was last active; undefined: it never opened, or that is forgotten. */
export function* sessionLastAt(key: SessionKey): Steps<number | undefined> {
  const row = yield* first<{ last_at: bigint }>(
    "SELECT last_at FROM robot_sessions WHERE account_id = $accountId AND model = $model AND session_id = $sessionId",
    { ...key },
  );
  return row && Number(row.last_at);
}

interface AnsweredRow {
  readonly digest: Uint8Array | null;
  readonly generation_id: string;
  readonly step: bigint | null;
  readonly head: string | null;
  readonly rows: Uint8Array | null;
}

export function* observation(key: ObservationKey): Steps<AnsweredObservation | undefined> {
  const row = yield* first<AnsweredRow>(
    `SELECT digest, generation_id, step, head, rows FROM observations
     WHERE account_id = $accountId AND model = $model AND session_id = $sessionId AND observation_id = $observationId`,
    { ...key },
  );
  if (!row) return undefined;
  const { digest, generation_id: generationId, step, head, rows } = row;
  return {
    digest: digest === null ? undefined : new Uint8Array(digest),
    generationId,
    step: step === null ? null : Number(step),
    answer: head === null || rows === null ? undefined : { head, rows: new Uint8Array(rows) },
  };
}
