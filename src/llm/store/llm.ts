/** The domain of language models: responses. A write ends a charge, or opens one, in the transaction of its response. */
import { hold, release } from "../../charge/store/charges.ts";
import type { HoldOutcome } from "../../charge/store/records.ts";
import { settle, settlementTransfer } from "../../charge/store/settle.ts";
import type { DomainOf, Slice } from "../../store/domain.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import { jobPutBack, jobsTake, orphans, ownerBeat, ownerForget, owners } from "./jobs.ts";
import type {
  Completion,
  Ending,
  Enqueuing,
  Job,
  NewResponse,
  ResponseKey,
  StoredResponse,
  Submission,
  Submitted,
} from "./records.ts";

const stored = recordOf<StoredResponse>();

const COLUMNS = "id, account_id, digest, state, owner, object";

/** One that its account may read. */
function* response({ id, accountId }: ResponseKey): Steps<StoredResponse | undefined> {
  const text = `SELECT ${COLUMNS} FROM responses WHERE id = $1 AND account_id = $2 AND hidden = 0`;
  const row = yield* first<Row>(text, id, accountId);
  return row && stored(row);
}

/** The state without the object, which may be megabytes. */
function* responseState({ id, accountId }: ResponseKey): Steps<Pick<StoredResponse, "state" | "owner"> | undefined> {
  const row = yield* first<Row>("SELECT state, owner FROM responses WHERE id = $1 AND account_id = $2", id, accountId);
  return row && stored(row);
}

/** The response of an `Idempotency-Key`. */
function* responseOfKey(of: { accountId: string; key: string }): Steps<StoredResponse | undefined> {
  const text = `SELECT ${COLUMNS} FROM responses WHERE account_id = $1 AND key = $2`;
  const row = yield* first<Row>(text, of.accountId, of.key);
  return row && stored(row);
}

/**
 * Records a live response and holds its money, unless its key is known. Not durable: a process that ends loses nothing of it, and
 * after a loss of power the request was not answered, and was charged at most once.
 */
function* submit({ charge, response, owner }: Submission): Steps<Submitted> {
  const known = yield* add(response, { owner });
  return known ?? { is: yield* held(charge) };
}

/** Records a background job and holds its money, unless its key is known or there are too many jobs. */
function* enqueue({ charge, at, response, request, accountMax, allMax }: Enqueuing): Steps<Submitted> {
  const known = yield* add(response, { request, submittedAt: at });
  if (known) return known;
  const outcome = yield* held(charge);
  if (outcome !== "held") return { is: outcome };
  // The hold has locked the account: nobody else adds a job of it meanwhile.
  const open = "SELECT count(*) AS jobs FROM responses WHERE job = 1 AND ended_at IS NULL";
  const own = Number((yield* first<{ jobs: bigint }>(`${open} AND account_id = $1`, response.accountId))?.jobs);
  const all = Number((yield* first<{ jobs: bigint }>(open))?.jobs);
  if (own > accountMax || all > allMax) {
    yield* remove(response.id);
    yield* release(charge);
    return { is: "full", bound: own > accountMax ? "account" : "all" };
  }
  // The number of the account's jobs ahead of it. In this order accounts take turns, however many jobs one has.
  yield* changes("UPDATE responses SET turn = $2 WHERE id = $1", response.id, own - 1);
  return { is: "held" };
}

/** With an owner it runs, else it is a queued job. Undefined: it is new, and recorded. A repeat of the same submission says the same. */
function* add(
  response: NewResponse,
  as: Pick<Submission, "owner"> | Pick<Job, "request" | "submittedAt">,
): Steps<Submitted | undefined> {
  const first = "owner" in as ? { state: "running", job: 0 } : { state: "queued", job: 1 };
  for (let tries = 0; ; tries += 1) {
    const added = yield* changes(
      `INSERT INTO responses
         (id, account_id, model, key, digest, state, owner, job, request, object, hidden, created_at, submitted_at)
       VALUES
         ($id, $accountId, $model, $key, $digest, $state, $owner, $job, $request, $object, $hidden, $createdAt, $submittedAt)
       ON CONFLICT DO NOTHING`,
      { owner: null, request: null, submittedAt: null, ...response, ...as, ...first, hidden: response.hidden ? 1 : 0 },
    );
    if (added > 0) return undefined;
    const known = yield* responseOfKey(response);
    if (known) return known.id === response.id ? { is: "held" } : { is: "known", response: known };
    // The other one has ended in between and given the key free. Twice in a row, or when this one was withdrawn: the caller asks again.
    if (tries >= 1) {
      return { is: "known", response: { ...response, state: "running", owner: undefined, object: undefined } };
    }
  }
}

function* held(charge: Submission["charge"]): Steps<HoldOutcome> {
  const outcome = yield* hold(charge);
  if (outcome !== "held") yield* remove(charge.chargeId);
  return outcome;
}

function* remove(id: string): Steps<void> {
  yield* changes("DELETE FROM responses WHERE id = $1", id);
}

/** The account first, as everybody who changes its money does, so that there is no deadlock. */
function* lockAccount(accountId: string): Steps<void> {
  yield* first("SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE", accountId);
}

/** Price and answer in one step. `lost`: another process has ended it, taking this one to be dead; nothing is charged. */
function* complete({ owner, object, estimated, ...settlement }: Completion): Steps<"kept" | "lost"> {
  const { chargeId: id, accountId, at } = settlement;
  yield* lockAccount(accountId);
  const found = yield* responseState({ id, accountId });
  if (found?.state === "done" && found.owner === owner) return "kept";
  if (found?.state !== "running" || found.owner !== owner) return "lost";
  if ((yield* settle(settlement)) === "not_held") return "lost";
  yield* changes(
    `UPDATE responses SET state = 'done', object = $object, request = NULL, estimated = $estimated, ended_at = $at
     WHERE id = $id`,
    { id, object, estimated: estimated ? 1 : 0, at },
  );
  return "kept";
}

/** Gives the money back and says what the key is worth. `lost`: it has ended otherwise. */
function* end({ id, accountId, owner, at, object, key }: Ending): Steps<"ended" | "lost"> {
  yield* lockAccount(accountId);
  const state = key === "answer" ? "done" : "ended";
  const ended = yield* changes(
    `UPDATE responses SET state = $state, object = $object, request = NULL, ended_at = $at,
       key = CASE WHEN $free = 1 THEN NULL ELSE key END
     WHERE id = $id AND account_id = $accountId AND owner = $owner AND state = 'running'`,
    { id, accountId, owner, at, object, state, free: key === "free" ? 1 : 0 },
  );
  if (ended === 0) return "lost";
  // The client never got the id, and the key means nothing: no request can ask for the row.
  if (key === "free" && object === undefined) yield* remove(id);
  yield* release({ chargeId: id, accountId });
  return "ended";
}

/**
 * Takes back a live response whose submission was not answered: gives the money back and the key free. Its id stays taken, so that
 * a submission that is still on its way finds it, and does nothing.
 */
function* withdraw(submission: Omit<Submission, "charge"> & Pick<Ending, "at">): Steps<"withdrawn"> {
  const { response, owner, at } = submission;
  const { id, accountId, model, digest, createdAt } = response;
  // Waits for the submission if that is under way.
  const taken = yield* changes(
    `INSERT INTO responses (id, account_id, model, digest, state, owner, job, created_at, ended_at)
     VALUES ($id, $accountId, $model, $digest, 'ended', $owner, 0, $createdAt, $at) ON CONFLICT DO NOTHING`,
    { id, accountId, model, digest, createdAt, owner, at },
  );
  if (taken > 0) return "withdrawn";
  yield* lockAccount(accountId);
  const ended = yield* changes(
    `UPDATE responses SET state = 'ended', key = NULL, object = NULL, ended_at = $3
     WHERE id = $1 AND owner = $2 AND state = 'running'`,
    id,
    owner,
    at,
  );
  if (ended > 0) yield* release({ chargeId: id, accountId });
  return "withdrawn";
}

/** Responses that one step forgets: other writes wait meanwhile. */
const FORGET_MAX = 256;

/** Deletes responses that ended before. */
function* responsesForget({ before, only }: { before: number; only?: "hidden" }): Steps<"done" | "more"> {
  const those = only ? "hidden = 1 AND ended_at < $1" : "ended_at < $1";
  const forgotten = yield* changes(
    `DELETE FROM responses WHERE id IN (SELECT id FROM responses WHERE ${those} ORDER BY ended_at LIMIT ${FORGET_MAX})`,
    before,
  );
  return forgotten < FORGET_MAX ? "done" : "more";
}

const reads = { response, responseState, responseOfKey, owners, orphans };

const writes = {
  submit,
  enqueue,
  complete,
  end,
  withdraw,
  jobsTake,
  jobPutBack,
  ownerBeat,
  ownerForget,
  responsesForget,
};

export const llm = {
  reads,
  writes,
  notDurable: ["submit", "ownerBeat"],
  books: { complete: { outcome: "kept", transfer: settlementTransfer } },
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type LlmStore = Slice<typeof llm>;
