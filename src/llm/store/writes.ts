/** Writes of responses. Each ends a charge, or opens one, in the transaction of its record. */

import { settle } from "../../charge/store/settle.ts";
import { hold, release } from "../../charge/store/writes.ts";
import { present } from "../../std/assert.ts";
import { changes, first, listed, rows, type Steps } from "../../store/steps.ts";
import { response, responseOfKey } from "./reads.ts";
import type {
  Completion,
  Ending,
  Enqueuing,
  Job,
  NewResponse,
  ResponseState,
  StoredResponse,
  Submission,
  Submitted,
} from "./records.ts";

/**
 * Records a live response and holds its money, unless its key is known. Not durable: a process that ends loses nothing of it, and
 * after a loss of power the request was not answered, and was charged at most once.
 */
export function* submit({ charge, response, owner }: Submission): Steps<Submitted> {
  const known = yield* add(response, { state: "running", owner, job: 0, turn: null, request: null });
  return known ?? (yield* held(charge));
}

/** Records a background job and holds its money, unless its key is known or there are too many jobs. */
export function* enqueue({ charge, response, request, accountMax, allMax }: Enqueuing): Steps<Submitted> {
  const known = yield* add(response, { state: "queued", owner: null, job: 1, turn: null, request });
  if (known) return known;
  const outcome = yield* held(charge);
  if (outcome !== "held") return outcome;
  // The hold has locked the account: nobody else adds a job of it meanwhile.
  const open = "SELECT count(*) AS jobs FROM responses WHERE job = 1 AND ended_at IS NULL";
  const own = Number((yield* first<{ jobs: bigint }>(`${open} AND account_id = $1`, response.accountId))?.jobs);
  const all = Number((yield* first<{ jobs: bigint }>(open))?.jobs);
  if (own > accountMax || all > allMax) {
    yield* remove(response.id);
    yield* release(charge);
    return { full: own > accountMax ? "account" : "all" };
  }
  // The account's jobs ahead of it: in this order accounts take turns, however many jobs one has.
  yield* changes("UPDATE responses SET turn = $2 WHERE id = $1", response.id, own - 1);
  return "held";
}

interface FirstState {
  readonly state: ResponseState;
  readonly owner: string | null;
  readonly job: number;
  readonly turn: number | null;
  readonly request: string | null;
}

/** Undefined: it is new, and recorded. A repeat of the same submission says the same as the first one. */
function* add(
  response: NewResponse,
  first: FirstState,
): Steps<{ readonly known: StoredResponse } | "held" | undefined> {
  for (let tries = 0; ; tries += 1) {
    const added = yield* changes(
      `INSERT INTO responses (id, account_id, model, key, digest, state, owner, job, turn, request, object, created_at)
       VALUES ($id, $accountId, $model, $key, $digest, $state, $owner, $job, $turn, $request, $object, $createdAt)
       ON CONFLICT DO NOTHING`,
      { ...response, ...first },
    );
    if (added > 0) return undefined;
    const known = yield* responseOfKey(response);
    if (known) return known.id === response.id ? "held" : { known };
    // The other one has ended in between and given the key free. Twice in a row, or when this one was withdrawn: the caller asks again.
    if (tries >= 1) return { known: { ...response, state: "running", owner: undefined, object: undefined } };
  }
}

function* held(charge: Submission["charge"]): Steps<Submitted> {
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
export function* complete({ owner, object, estimated, ...settlement }: Completion): Steps<"kept" | "lost"> {
  const { chargeId: id, accountId, at } = settlement;
  yield* lockAccount(accountId);
  const found = yield* response({ id, accountId });
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
export function* end({ id, accountId, owner, at, object, key }: Ending): Steps<"ended" | "lost"> {
  yield* lockAccount(accountId);
  const state = key === "answer" ? "done" : "ended";
  const ended = yield* changes(
    `UPDATE responses SET state = $state, object = $object, request = NULL, ended_at = $at,
       key = CASE WHEN $free = 1 THEN NULL ELSE key END
     WHERE id = $id AND account_id = $accountId AND owner = $owner AND state = 'running'`,
    { id, accountId, owner, at, object, state, free: key === "free" ? 1 : 0 },
  );
  if (ended === 0) return "lost";
  // Nobody can ask for it: its id was never told, and its key means nothing.
  if (key === "free" && object === undefined) yield* remove(id);
  yield* release({ chargeId: id, accountId });
  return "ended";
}

/**
 * Takes back a live response whose submission was not answered: gives the money back and the key free. Its id stays taken, so that
 * a submission that is still on its way finds it, and does nothing.
 */
export function* withdraw({
  response,
  owner,
  at,
}: Pick<Submission, "response" | "owner"> & Pick<Ending, "at">): Steps<"withdrawn"> {
  const { id, accountId } = response;
  // Waits for the submission if that is under way.
  const taken = yield* changes(
    `INSERT INTO responses (id, account_id, model, digest, state, owner, job, created_at, ended_at)
     VALUES ($id, $accountId, $model, $digest, 'ended', $owner, 0, $createdAt, $at) ON CONFLICT DO NOTHING`,
    { ...response, owner, at },
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

/** Queued jobs that one statement looks at. */
const LOOKED_AT = 256;

interface Taking {
  readonly owner: string;
  /** The jobs that the owner knows to be its own. */
  readonly known: readonly string[];
  readonly max: number;
  readonly accountMax: number;
}

/**
 * Gives queued jobs to the owner, at most `max`, and of one account as many as make `accountMax` with those that run already. From
 * then on the provider may have been called, so nobody else gets the job. The owner gets one again that it does not know: the
 * answer that named it was lost.
 */
export function* jobsTake({ owner, known, max, accountMax }: Taking): Steps<readonly Job[]> {
  const jobs = [...(yield* jobsTaken({ owner, known, max }))];
  const running = yield* rows<{ accountId: string; jobs: bigint }>(
    `SELECT account_id AS "accountId", count(*) AS jobs FROM responses
     WHERE job = 1 AND ended_at IS NULL AND state = 'running' GROUP BY account_id`,
  );
  const ofAccount = new Map(running.map((row) => [row.accountId, Number(row.jobs)]));
  for (;;) {
    const full = [...ofAccount].filter(([, count]) => count >= accountMax).map(([accountId]) => accountId);
    const queued = yield* rows<{ id: string; accountId: string }>(
      `SELECT id, account_id AS "accountId" FROM responses
       WHERE state = 'queued' AND account_id NOT IN ${listed(1)} ORDER BY turn, id LIMIT ${LOOKED_AT}`,
      JSON.stringify(full),
    );
    for (const { id, accountId } of queued) {
      if (jobs.length >= max) return jobs;
      const own = ofAccount.get(accountId) ?? 0;
      if (own >= accountMax) continue;
      const job = yield* jobTake(id, owner);
      if (!job) continue;
      ofAccount.set(accountId, own + 1);
      jobs.push(job);
    }
    if (queued.length < LOOKED_AT) return jobs;
  }
}

const JOB = `id, account_id AS "accountId", model, key, request, object`;

type TakenJob = Omit<Job, "held" | "prompt" | "cachedPrompt" | "completion">;

/** Those of an earlier call whose answer was lost. */
function* jobsTaken({ owner, known, max }: Omit<Taking, "accountMax">): Steps<readonly Job[]> {
  const taken = yield* rows<TakenJob>(
    `SELECT ${JOB} FROM responses WHERE state = 'running' AND owner = $1 AND job = 1 AND id NOT IN ${listed(2)}
     ORDER BY id LIMIT $3`,
    owner,
    JSON.stringify(known),
    max,
  );
  const jobs: Job[] = [];
  for (const job of taken) jobs.push(yield* priced(job));
  return jobs;
}

/** Undefined: another process has taken it. */
function* jobTake(id: string, owner: string): Steps<Job | undefined> {
  const job = yield* first<TakenJob>(
    `UPDATE responses SET state = 'running', owner = $2 WHERE id = $1 AND state = 'queued' RETURNING ${JOB}`,
    id,
    owner,
  );
  return job && (yield* priced(job));
}

/** With what its charge holds, which lasts as long as the job. */
function* priced(job: TakenJob): Steps<Job> {
  const charge = yield* first<Pick<Job, "held" | "prompt" | "cachedPrompt" | "completion">>(
    `SELECT held, prompt_rate AS prompt, cached_rate AS "cachedPrompt", completion_rate AS completion
     FROM charges WHERE id = $1 AND settled_at IS NULL`,
    job.id,
  );
  return { ...job, ...present(charge, "the charge of a job") };
}

/** Says that the owner lives. */
export function* ownerBeat({ owner }: { owner: string }): Steps<"beaten"> {
  yield* changes(
    "INSERT INTO llm_owners (owner, beat) VALUES ($1, 1) ON CONFLICT (owner) DO UPDATE SET beat = llm_owners.beat + 1",
    owner,
  );
  return "beaten";
}

/** An owner that ended, none of whose responses run. */
export function* ownerForget({ owner }: { owner: string }): Steps<"forgotten"> {
  yield* changes(
    `DELETE FROM llm_owners WHERE owner = $1
     AND NOT EXISTS (SELECT 1 FROM responses WHERE state = 'running' AND owner = $1)`,
    owner,
  );
  return "forgotten";
}

/** Responses that one step forgets: other writes wait meanwhile. */
const FORGET_MAX = 256;

/** Deletes responses that ended before. */
export function* responsesForget({ before }: { before: number }): Steps<"done" | "more"> {
  const forgotten = yield* changes(
    `DELETE FROM responses WHERE id IN (SELECT id FROM responses WHERE ended_at < $1 ORDER BY ended_at LIMIT ${FORGET_MAX})`,
    before,
  );
  return forgotten < FORGET_MAX ? "done" : "more";
}
