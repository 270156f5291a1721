/**
 * Background jobs: queued in the store, taken by a process that has a place free, and ended exactly once. Taking a job and calling
 * the provider are one step for everybody else. A job goes back to the queue only when its process says so: the provider was away, or
 * the service stops. One whose process was killed has failed.
 */
import { LIMITS } from "../limits.ts";
import type { Failure } from "../std/failure.ts";
import { stackOf } from "../std/log.ts";
import { RandomStream } from "../std/random.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { callProvider, type FailedCall } from "./call.ts";
import type { RespondCommand } from "./command.ts";
import type { LlmDeps } from "./deps.ts";
import { stopped, unconfigured, unsaid } from "./errors.ts";
import { failedObject, parsedObject, type ResponseObject } from "./output/object.ts";
import type { Provider } from "./provider/provider.ts";
import { begin, complete, end, hold, newRecord, putBack } from "./record.ts";
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
    deps.store.enqueue({ charge, at: seenSeconds(deps.clock), response, request: JSON.stringify(request), ...bounds }),
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
  /** Those that were begun, and whose end is not in the store yet: they are not begun again. */
  private readonly begun = new Set<string>();
  private looking = false;
  private again = false;
  /** A service that does not get ready must not take what it would only put back. */
  private started = false;
  /** Ends the wait for the next job that is due. */
  private disarm = () => {};
  private readonly chance: RandomStream;

  constructor(private readonly deps: LlmDeps) {
    // Each process has its own, so that the jobs of several nodes do not come back at one time. The simulation's clock gives it again.
    const { clock } = deps;
    this.chance = new RandomStream(`pauses of jobs ${clock.seenMs()} ${clock.monotonicMs()}`);
  }

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
    const { lifecycle } = this.deps;
    this.looking = true;
    // A shutdown waits for what is being taken.
    lifecycle.enter();
    this.look()
      .catch((error: unknown) => this.deps.log.error("jobs fault", { stack: String(error) }))
      .finally(() => {
        this.looking = false;
        lifecycle.leave();
        if (this.again && this.runningJobs < LIMITS.llmJobsRunningMax && !lifecycle.draining) this.kick();
      });
  }

  private async look(): Promise<void> {
    const { clock, store, owner, lifecycle } = this.deps;
    while (this.again && !lifecycle.draining) {
      this.again = false;
      const max = LIMITS.llmJobsRunningMax - this.runningJobs;
      if (max <= 0) return;
      const taken = await store.jobsTake({
        owner,
        known: [...this.begun],
        max,
        accountMax: LIMITS.accountLlmJobsRunningMax,
        modelMax: LIMITS.modelLlmJobsRunningMax,
        nowMs: Math.floor(clock.seenMs()),
      });
      if (taken instanceof StoreDown) return;
      for (const job of taken.jobs) this.begin(job);
      this.disarm();
      const { nextMs } = taken;
      if (nextMs !== undefined) this.disarm = clock.after(Math.max(0, nextMs - clock.seenMs()), () => this.kick());
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
    const { deps } = this;
    const { id: chargeId, accountId, model: item, key: sessionId, held, prompt, cachedPrompt, completion } = job;
    // Written by this service (`submitJob`).
    const request = JSON.parse(job.request) as LlmRequest;
    const { model } = request;
    const provider = deps.providers.get(model);
    if (!provider) return this.failed(job, unconfigured(model));
    if (deps.drills.strikes("job_lost", { accountId, model, sessionId, step: 0 })) return this.failed(job, stopped());
    const outcome = await callProvider(deps, { request, provider, caller: job });
    if ("failure" in outcome) return this.unanswered(job, provider, outcome);
    const charge = { chargeId, accountId, item, held, rates: { prompt, cachedPrompt, completion } };
    return this.ended(job, complete(deps, charge, objectOf(job), outcome));
  }

  /** What passes is tried again; any other failure is an answer. */
  private unanswered(job: Job, { config }: Provider, { failure, output }: FailedCall): Promise<void> {
    const dueMs = this.dueMs(job, config, failure);
    const { code, detail = "" } = failure;
    this.deps.log.info(dueMs === undefined ? "job failed" : "job put back", { response: job.id, code, detail });
    return dueMs === undefined ? this.failed(job, failure, output) : this.ended(job, putBack(this.deps, job, dueMs));
  }

  /** The seen time from which on the job may be sent again; undefined: it has failed. */
  private dueMs({ submittedAt, repeats }: Job, { jobRetrySeconds }: Provider["config"], failure: Failure) {
    const { clock, lifecycle } = this.deps;
    if (failure.row.final || jobRetrySeconds === 0) return undefined;
    const now = Math.ceil(clock.seenMs());
    // The service stopped the call at its own end, and the next process takes the job at once.
    if (lifecycle.over.aborted) return now;
    const { first, longest } = LIMITS.llmJobPauseMs;
    const pause = Math.min(longest, first * 2 ** repeats);
    const asked = 1_000 * (failure.retryAfterSeconds ?? 0);
    const dueMs = now + Math.max(pause, asked) + Math.floor((pause * this.chance.word()) / 2 ** 32);
    return dueMs <= 1_000 * (submittedAt + jobRetrySeconds) ? dueMs : undefined;
  }

  private failed(job: Job, failure: Failure, output: FailedCall["output"] = []): Promise<void> {
    return this.ended(job, end(this.deps, job, failedObject(objectOf(job), failure, output), "answer"));
  }

  /** Lost or not, this process does not begin it again by itself. */
  private async ended({ id }: Job, { last }: { readonly last: Promise<unknown> }): Promise<void> {
    if (!((await last) instanceof StoreDown)) this.begun.delete(id);
  }
}

/** The object of a job that was taken. */
function objectOf(job: Job): ResponseObject {
  return { ...parsedObject(job.object), status: "in_progress" };
}
