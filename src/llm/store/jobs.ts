/** Background jobs, and the processes whose responses are not over. */
import { present } from "../../std/assert.ts";
import { changes, first, listed, rows, type Steps } from "../../store/steps.ts";
import type { Job, Orphan } from "./records.ts";

/** Queued jobs that one statement looks at. */
const LOOKED_AT = 256;

interface JobRequest {
  readonly owner: string;
  /** The jobs that the owner knows to be its own. */
  readonly known: readonly string[];
  readonly max: number;
  readonly accountMax: number;
}

/**
 * Gives queued jobs to the owner, at most `max`, and of one account as many as make `accountMax` with those that are running already. From
 * then on the provider may have been called, so nobody else gets the job. The owner gets one again that it does not know: the
 * answer that named it was lost.
 */
export function* jobsTake({ owner, known, max, accountMax }: JobRequest): Steps<readonly Job[]> {
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
function* jobsTaken({ owner, known, max }: Omit<JobRequest, "accountMax">): Steps<readonly Job[]> {
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
