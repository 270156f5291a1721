/** Reads of responses, and of the processes that run them. */
import { type Row, recordOf } from "../../store/record.ts";
import { first, rows, type Steps } from "../../store/steps.ts";
import type { Orphan, ResponseKey, StoredResponse } from "./records.ts";

const stored = recordOf<StoredResponse>();

const COLUMNS = "id, account_id, model, digest, state, owner, object";

export function* response({ id, accountId }: ResponseKey): Steps<StoredResponse | undefined> {
  const row = yield* first<Row>(`SELECT ${COLUMNS} FROM responses WHERE id = $1 AND account_id = $2`, id, accountId);
  return row && stored(row);
}

/** Where it is, without its object, which may be megabytes. */
export function* responseState({
  id,
  accountId,
}: ResponseKey): Steps<Pick<StoredResponse, "state" | "owner"> | undefined> {
  const row = yield* first<Row>("SELECT state, owner FROM responses WHERE id = $1 AND account_id = $2", id, accountId);
  return row && stored(row);
}

/** By its `Idempotency-Key`. */
export function* responseOfKey(of: { accountId: string; key: string }): Steps<StoredResponse | undefined> {
  const text = `SELECT ${COLUMNS} FROM responses WHERE account_id = $1 AND key = $2`;
  const row = yield* first<Row>(text, of.accountId, of.key);
  return row && stored(row);
}

/** The processes that run responses, with a number that each raises while it lives; one that never said so has 0. */
export function* owners(): Steps<readonly { readonly owner: string; readonly beat: bigint }[]> {
  return yield* rows<{ owner: string; beat: bigint }>(
    `SELECT owner, beat FROM llm_owners
     UNION ALL SELECT DISTINCT owner, 0 FROM responses
       WHERE state = 'running' AND NOT EXISTS (SELECT 1 FROM llm_owners WHERE llm_owners.owner = responses.owner)`,
  );
}

/** How many one question for orphans finds. */
const ORPHANS_MAX = 64;

/** Responses that the owner runs. */
export function* orphans({ owner }: { owner: string }): Steps<readonly Orphan[]> {
  const found = yield* rows<{ id: string; accountId: string; model: string; object: string | null; job: bigint }>(
    `SELECT id, account_id AS "accountId", model, object, job
     FROM responses WHERE state = 'running' AND owner = $1 ORDER BY id LIMIT ${ORPHANS_MAX}`,
    owner,
  );
  return found.map(({ object, job, ...row }) => ({ ...row, object: object ?? undefined, job: job === 1n }));
}
