/**
 * Background jobs: queued in the store, taken by a process that has a place free, and ended exactly once. Taking a job and calling
 * the provider are one step for everybody else: a job that was taken is never run again, whatever becomes of its process.
 */

import { LIMITS } from "../limits.ts";
import { present } from "../std/assert.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { Known, RespondCommand } from "./command.ts";
import type { LlmDeps } from "./deps.ts";
import { notConfirmed, tooMany, unconfigured } from "./failures.ts";
import { cancelledObject, endedObject, failedObject, newObject, type ResponseObject } from "./output/object.ts";
import { persist, type UnknownOutcome, unconfirmed } from "./persist.ts";
import type { Provider } from "./provider/provider.ts";
import type { LlmRequest } from "./request.ts";
import { type Answer, type RunFailure, run, stopped } from "./run.ts";
import type { Job } from "./store/records.ts";
import { inputTokensMax } from "./usage.ts";

/** Durable when it resolves. */
export async function submitJob(
  deps: LlmDeps,
  { request, accountId, key, digest }: RespondCommand,
  { config }: Provider,
): Promise<{ readonly begun: ResponseObject } | Failure | Known> {
  const id = makeId("resp_", deps.clock);
  const object = newObject(id, unixSeconds(deps.clock), "queued", request);
  const response = {
    id,
    accountId,
    model: request.model,
    key,
    digest,
    object: JSON.stringify(object),
    createdAt: object.created_at,
  };
  const max = { promptTokens: inputTokensMax(request, config), completionTokens: request.max_output_tokens };
  const held = await deps.charges.hold<Known | { full: "account" | "all" } | UnknownOutcome>(
    // The job's record ends the hold, after a restart as well.
    { chargeId: id, accountId, item: request.model, rates: config.rates, max, deadlineMs: "none" },
    async (charge) =>
      unconfirmed(
        await deps.store.enqueue({
          charge,
          response,
          request: JSON.stringify(request),
          accountMax: LIMITS.accountLlmJobsMax,
          allMax: LIMITS.llmJobsMax,
        }),
      ),
  );
  if (held instanceof Failure || "known" in held) return held;
  if ("full" in held) return tooMany(held.full, "jobs");
  // If it was accepted, it runs, and its key returns it.
  if ("reason" in held) return notConfirmed(held.reason);
  deps.kick();
  return { begun: object };
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
    this.run(job)
      .catch((error: unknown) => {
        deps.log.error("job fault", {
          response: job.id,
          stack: error instanceof Error ? (error.stack ?? "") : String(error),
        });
        return this.end(job, failedObject(objectOf(job), stopped()));
      })
      .finally(() => {
        this.runningJobs -= 1;
        deps.lifecycle.leave();
        deps.watchers.tell(job.id);
        this.kick();
      });
  }

  private async run(job: Job): Promise<void> {
    const { deps } = this;
    const { accountId, id, key } = job;
    // Written by this service (`submitJob`).
    const request = JSON.parse(job.request) as LlmRequest;
    const provider = deps.providers.get(request.model);
    const begun = objectOf(job);
    if (!provider) return this.end(job, failedObject(begun, unconfigured(request.model)));
    if (deps.drills.strikes("job_lost", { accountId, model: job.model, sessionId: key, step: 0 })) {
      return this.end(job, failedObject(begun, stopped()));
    }
    const caller = { accountId, requestId: id, key };
    const outcome = await run(deps, { request, provider, caller, once: true, signal: deps.lifecycle.over });
    if ("failure" in outcome) return this.end(job, this.unanswered(begun, outcome));
    return this.completed(job, begun, outcome);
  }

  /** One that the service stopped at its own end was cancelled; any other failure is an answer as well. */
  private unanswered(begun: ResponseObject, { failure, output }: RunFailure): ResponseObject {
    const { log, lifecycle } = this.deps;
    log.info("job failed", { response: begun.id, code: failure.code, detail: failure.detail ?? "" });
    return lifecycle.over.aborted ? cancelledObject(begun, output) : failedObject(begun, failure, output);
  }

  private async completed(
    job: Job,
    begun: ResponseObject,
    { output, usage, incomplete, estimated }: Answer,
  ): Promise<void> {
    const { deps } = this;
    const { id: chargeId, accountId, model: item, held, prompt, cachedPrompt, completion } = job;
    const charge = { chargeId, accountId, item, held, rates: { prompt, cachedPrompt, completion } };
    const object = JSON.stringify(endedObject(begun, { output, usage, incomplete, at: unixSeconds(deps.clock) }));
    const { inputTokens: promptTokens, cachedTokens, outputTokens: completionTokens } = usage;
    const kept = await persist(deps, job.id, () =>
      deps.charges.settle(charge, { promptTokens, cachedTokens, completionTokens }, (settlement) =>
        deps.store.complete({ ...settlement, owner: deps.owner, object, estimated }),
      ),
    ).last;
    // Lost or kept, it runs no more.
    if (!(kept instanceof StoreDown)) this.begun.delete(chargeId);
  }

  private async end({ id, accountId }: Job, object: ResponseObject): Promise<void> {
    const { deps } = this;
    const at = seenSeconds(deps.clock);
    const text = JSON.stringify(object);
    const ended = await persist(deps, id, () =>
      deps.store.end({ id, accountId, owner: deps.owner, at, object: text, key: "answer" }),
    ).last;
    // Lost or not, it runs no more.
    if (!(ended instanceof StoreDown)) this.begun.delete(id);
  }
}

/** The object of a job that runs. */
function objectOf(job: Job): ResponseObject {
  const object = JSON.parse(present(job.object, "the object of a job")) as ResponseObject;
  return { ...object, status: "in_progress" };
}
