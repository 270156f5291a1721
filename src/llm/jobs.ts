/**
 * Background jobs: queued in the store, taken by a process that has a place free, and ended exactly once. Taking a job and calling
 * the provider are one step for everybody else: a job that was taken is never taken again, whatever becomes of its process.
 */
import { LIMITS } from "../limits.ts";
import { Failure } from "../std/failure.ts";
import { stackOf } from "../std/log.ts";
import { StoreDown } from "../store/store.ts";
import { type Answer, callProvider, type FailedCall } from "./call.ts";
import type { RespondCommand } from "./command.ts";
import type { LlmDeps } from "./deps.ts";
import { stopped, unconfigured, unsaid } from "./errors.ts";
import { cancelledObject, failedObject, type ResponseObject } from "./output/object.ts";
import type { Provider } from "./provider/provider.ts";
import { begin, complete, end, hold, newRecord } from "./record.ts";
import type { LlmRequest } from "./request.ts";
import type { Job, Known } from "./store/records.ts";

/** Durable when it resolves. */
export async function submitJob(
  deps: LlmDeps,
  { request, ...command }: RespondCommand,
  provider: Provider,
): Promise<{ readonly begun: ResponseObject } | Failure | Known> {
  const begun = begin(deps, request);
  const response = newRecord(command, begun, request, JSON.stringify(begun));
  const bounds = { accountMax: LIMITS.accountLlmJobsMax, allMax: LIMITS.llmJobsMax };
  const held = await hold(deps, provider, request, response, (charge) =>
    deps.store.enqueue({ charge, response, request: JSON.stringify(request), ...bounds }),
  );
  if (held.is === "known") return held;
  if (held.is === "failed") return held.failure;
  // If it was accepted, it is begun, and its key returns it.
  if (held.is === "unsaid") {
    const message = "the store did not say in time whether the request is accepted; repeat it with the same key";
    return unsaid(message, held.reason);
  }
  deps.kick();
  return { begun };
}

export class Jobs {
  private runningJobs = 0;
  /** Those that were begun and have not ended in the store: they are not begun again. */
  private readonly begun = new Set<string>();
  private looking = false;
  private again = false;
  /** A service that does not get ready must not take what it would only cancel. */
  private started = false;

  constructor(private readonly deps: LlmDeps) {}

  get running(): number {
    return this.runningJobs;
  }

  /** Begins to take jobs. */
  start(): void {
    this.started = true;
    this.kick();
  }

  /** Takes what is queued, as far as there are places. */
  kick(): void {
    this.again = true;
    if (this.looking || !this.started) return;
    this.looking = true;
    this.look()
      .catch((error: unknown) => this.deps.log.error("jobs fault", { stack: String(error) }))
      .finally(() => {
        this.looking = false;
        if (this.again && this.runningJobs < LIMITS.llmJobsRunningMax && !this.deps.lifecycle.draining) this.kick();
      });
  }

  private async look(): Promise<void> {
    const { store, owner, lifecycle } = this.deps;
    while (this.again && !lifecycle.draining) {
      this.again = false;
      const max = LIMITS.llmJobsRunningMax - this.runningJobs;
      if (max <= 0) return;
      const jobs = await store.jobsTake({
        owner,
        known: [...this.begun],
        max,
        accountMax: LIMITS.accountLlmJobsRunningMax,
      });
      if (jobs instanceof StoreDown) return;
      for (const job of jobs) this.begin(job);
    }
  }

  private begin(job: Job): void {
    const { deps } = this;
    this.runningJobs += 1;
    this.begun.add(job.id);
    deps.lifecycle.enter();
    this.perform(job)
      .catch((error: unknown) => {
        deps.log.error("job fault", { response: job.id, stack: stackOf(error) });
        return this.failed(job, stopped());
      })
      .finally(() => {
        this.runningJobs -= 1;
        deps.lifecycle.leave();
        deps.watchers.tell(job.id);
        this.kick();
      });
  }

  private async perform(job: Job): Promise<void> {
    const { id: chargeId, accountId, model: item, held, prompt, cachedPrompt, completion } = job;
    const outcome = await this.outcome(job);
    if (outcome instanceof Failure) return this.failed(job, outcome);
    const begun = objectOf(job);
    if ("failure" in outcome) return this.ended(job, end(this.deps, job, this.unanswered(begun, outcome), "answer"));
    const charge = { chargeId, accountId, item, held, rates: { prompt, cachedPrompt, completion } };
    return this.ended(job, complete(this.deps, charge, begun, outcome));
  }

  private failed(job: Job, failure: Failure): Promise<void> {
    return this.ended(job, end(this.deps, job, failedObject(objectOf(job), failure), "answer"));
  }

  /** Lost or not, it is not begun again. */
  private async ended({ id }: Job, { last }: { readonly last: Promise<unknown> }): Promise<void> {
    if (!((await last) instanceof StoreDown)) this.begun.delete(id);
  }

  private async outcome(job: Job): Promise<Answer | FailedCall | Failure> {
    const { deps } = this;
    // Written by this service (`submitJob`).
    const request = JSON.parse(job.request) as LlmRequest;
    const provider = deps.providers.get(request.model);
    if (!provider) return unconfigured(request.model);
    const { accountId, model, key: sessionId } = job;
    if (deps.drills.strikes("job_lost", { accountId, model, sessionId, step: 0 })) return stopped();
    return await callProvider(deps, { request, provider, caller: job, once: true });
  }

  /** A job that the service stopped at its own end was cancelled; any other failure is an answer as well. */
  private unanswered(begun: ResponseObject, { failure, output }: FailedCall): ResponseObject {
    const { log, lifecycle } = this.deps;
    log.info("job failed", { response: begun.id, code: failure.code, detail: failure.detail ?? "" });
    return lifecycle.over.aborted ? cancelledObject(begun, output) : failedObject(begun, failure, output);
  }
}

/** The object of a job that was taken. */
function objectOf(job: Job): ResponseObject {
  // Written by this service (`submitJob`).
  return { ...(JSON.parse(job.object) as ResponseObject), status: "in_progress" };
}
