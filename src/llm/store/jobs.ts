/** Background jobs, and the processes whose responses are not over. */
import { present } from "../../std/assert.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, listed, rows, type Steps } from "../../store/steps.ts";
import type { Job, JobCharge, Orphan, ResponseKey } from "./records.ts";

/** Queued jobs that one statement looks at. */
const LOOKED_AT = 256;

interface JobRequest {
  readonly owner: string;
  /** The jobs that the owner knows to be its own. */
  readonly known: readonly string[];
  readonly max: number;
  /** Those of one account. */
  readonly accountMax: number;
  /** Those of one model: with this owner, and of one account. */
  readonly modelMax: number;
  readonly nowMs: number;
}

type Whose = Pick<Job, "accountId" | "model">;

/** Places that are left, by the names of the bounds under which a job counts. */
class Places {
  private readonly left = new Map<string, number>();

  constructor(private readonly bounds: Pick<JobRequest, "accountMax" | "modelMax">) {}

  take({ accountId, model }: Whose, count: number, isOwn: boolean): void {
    const { accountMax, modelMax } = this.bounds;
    const subtract = (name: string, max: number) => this.left.set(name, (this.left.get(name) ?? max) - count);
    subtract(accountId, accountMax);
    subtract(`${accountId} ${model}`, modelMax);
    if (isOwn) subtract(model, modelMax);
  }

  get full(): readonly string[] {
    return [...this.left].filter(([, left]) => left <= 0).map(([name]) => name);
  }

  has({ accountId, model }: Whose): boolean {
    return [accountId, model, `${accountId} ${model}`].every((name) => (this.left.get(name) ?? 1) > 0);
  }
}

/**
 * Gives queued jobs that are due to the owner, at most `max`, and of one account and one model as many as make their bounds with those
 * that are running already. From then on the provider may have been called, so nobody else gets the job. The owner gets one again that
 * it does not know: the answer that named it was lost. `nextMs`: when the next one is due.
 */
export function* jobsTake(asked: JobRequest): Steps<{ readonly jobs: readonly Job[]; readonly nextMs?: number }> {
  const { owner, known, max, nowMs } = asked;
  const jobs = [...(yield* jobsTaken(asked))];
  const running = yield* rows<Whose & { owner: string; jobs: bigint }>(
    `SELECT account_id AS "accountId", model, owner, count(*) AS jobs
     FROM responses WHERE job = 1 AND ended_at IS NULL AND state = 'running' GROUP BY account_id, model, owner`,
  );
  const places = new Places(asked);
  for (const row of running) places.take(row, Number(row.jobs), row.owner === owner);
  for (let more = true; more && jobs.length < max; ) {
    const queued = yield* rows<Whose & { id: string }>(
      `SELECT id, account_id AS "accountId", model FROM responses
       WHERE state = 'queued' AND due_ms <= $1 AND id NOT IN ${listed(2)} AND account_id NOT IN ${listed(3)}
         AND model NOT IN ${listed(3)} AND account_id || ' ' || model NOT IN ${listed(3)}
       ORDER BY turn, id LIMIT ${LOOKED_AT}`,
      nowMs,
      JSON.stringify(known),
      JSON.stringify(places.full),
    );
    for (const one of queued) {
      const job = jobs.length < max && places.has(one) ? yield* jobTake(one.id, asked) : undefined;
      if (!job) continue;
      places.take(one, 1, true);
      jobs.push(job);
    }
    more = queued.length === LOOKED_AT;
  }
  const next = yield* first<{ dueMs: bigint | null }>(
    `SELECT min(due_ms) AS "dueMs" FROM responses WHERE state = 'queued' AND due_ms > $1`,
    nowMs,
  );
  return { jobs, ...(next?.dueMs == null ? {} : { nextMs: Number(next.dueMs) }) };
}

const JOB = "id, account_id, model, key, request, object, submitted_at, repeats";
const taken = recordOf<Omit<Job, keyof JobCharge>>("submittedAt", "repeats");

/** Those of an earlier call whose answer was lost. */
function* jobsTaken({ owner, known, max }: JobRequest): Steps<readonly Job[]> {
  const found = yield* rows<Row>(
    `SELECT ${JOB} FROM responses WHERE state = 'running' AND owner = $1 AND job = 1 AND id NOT IN ${listed(2)}
     ORDER BY id LIMIT $3`,
    owner,
    JSON.stringify(known),
    max,
  );
  const jobs: Job[] = [];
  for (const job of found) jobs.push(yield* priced(job));
  return jobs;
}

/** Undefined: another process has taken it, and may have put it back. */
function* jobTake(id: string, { owner, nowMs }: JobRequest): Steps<Job | undefined> {
  const job = yield* first<Row>(
    `UPDATE responses SET state = 'running', owner = $2 WHERE id = $1 AND state = 'queued' AND due_ms <= $3 RETURNING ${JOB}`,
    id,
    owner,
    nowMs,
  );
  return job && (yield* priced(job));
}

/** With `repeats` as it was when the job was taken, so that a repeat of this does nothing to a job that was taken again. */
interface PutBack extends ResponseKey, Pick<Job, "repeats"> {
  readonly owner: string;
  /** Seen time from which on it may be taken again. */
  readonly dueMs: number;
}

/** Its hold stays. `lost`: another process has ended it, or this was done before. */
export function* jobPutBack({ id, accountId, owner, repeats, dueMs }: PutBack): Steps<"queued" | "lost"> {
  const queued = yield* changes(
    `UPDATE responses SET state = 'queued', owner = NULL, repeats = repeats + 1, due_ms = $dueMs
     WHERE id = $id AND account_id = $accountId AND owner = $owner AND repeats = $repeats AND state = 'running'`,
    { id, accountId, owner, repeats, dueMs },
  );
  return queued > 0 ? "queued" : "lost";
}

/** With what its charge holds, which lasts as long as the job. */
function* priced(row: Row): Steps<Job> {
  const job = taken(row);
  const charge = yield* first<JobCharge>(
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

/** Removes an owner that ended, once none of its responses is running. */
export function* ownerForget({ owner }: { owner: string }): Steps<"forgotten"> {
  yield* changes(
    `DELETE FROM llm_owners WHERE owner = $1
     AND NOT EXISTS (SELECT 1 FROM responses WHERE state = 'running' AND owner = $1)`,
    owner,
  );
  return "forgotten";
}

/** The processes that own running responses, with the number that each raises while it lives; one that never raised it has 0. */
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
  const found = yield* rows<{ id: string; accountId: string; object: string | null; job: bigint }>(
    `SELECT id, account_id AS "accountId", object, job
     FROM responses WHERE state = 'running' AND owner = $1 ORDER BY id LIMIT ${ORPHANS_MAX}`,
    owner,
  );
  return found.map(({ object, job, ...row }) => ({ ...row, object: object ?? undefined, job: job === 1n }));
}
