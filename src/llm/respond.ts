/** `POST /v1/responses` behind its checks: exactly one response for each key, live or as a background job. */
import { LIMITS } from "../limits.ts";
import { Failure } from "../std/failure.ts";
import { stackOf } from "../std/log.ts";
import { StoreDown } from "../store/store.ts";
import type { Known, RespondCommand, ResponseOutcome } from "./command.ts";
import type { LlmDeps, RunningResponse } from "./deps.ts";
import { conflict, drilledMoney, stillRuns, storeDown, terminal, tooMany, unconfigured } from "./errors.ts";
import { submitJob } from "./jobs.ts";
import { Live } from "./live.ts";
import { isBackground } from "./models.ts";
import { EventFlow } from "./output/flow.ts";
import type { ResponseObject } from "./output/object.ts";
import { begunOf, replayOutput, terminalEvent } from "./output/replay.ts";
import type { StoredResponse } from "./store/records.ts";
import { shownText, watch } from "./watch.ts";

export async function respond(deps: LlmDeps, command: RespondCommand): Promise<ResponseOutcome> {
  const { request, accountId, key } = command;
  const { clock } = deps;
  const deadlineMs = clock.monotonicMs() + LIMITS.llmKeyWaitMs;
  const name = `${accountId}\n${key}`;
  for (;;) {
    const running = deps.running.get(name);
    if (running) return await behind(deps, command, running);
    const outcome = await answer(deps, command, name);
    if (!("known" in outcome)) return outcome;
    const { known } = outcome;
    if (Buffer.compare(known.digest, command.digest) !== 0) return conflict();
    if (isBackground(request.model)) return job(deps, command, known);
    if (known.state === "done" && known.object !== undefined) return replay(deps, command, known.object);
    if (known.state === "ended") return terminal();
    if (clock.monotonicMs() >= deadlineMs || deps.lifecycle.over.aborted) return stillRuns();
    // It runs in another process, or in one that has ended and whose responses are yet to be ended.
    await deps.watchers.moved(known.id);
  }
}

/** A new response, or the one that the key has. */
async function answer(deps: LlmDeps, command: RespondCommand, name: string): Promise<ResponseOutcome | Known> {
  const { model } = command.request;
  const provider = deps.providers.get(model);
  const refused = provider ? drilledMoney((drill) => deps.drills.strikes(drill)) : unconfigured(model);
  if (!provider || refused) {
    // What the key has already is returned all the same.
    const known = await deps.store.responseOfKey(command);
    if (known instanceof StoreDown) return storeDown(known);
    return known ? { known } : (refused ?? unconfigured(model));
  }
  if (isBackground(model)) {
    const submitted = await submitJob(deps, command, provider);
    if (submitted instanceof Failure || "known" in submitted) return submitted;
    const { begun: object } = submitted;
    if (!command.request.stream) return { object: JSON.stringify(object), replayed: false };
    return watch(deps, { accountId: command.accountId, object, replayed: false });
  }
  const live = new Live(deps, command, provider);
  // Before anything is awaited: from here on requests with this key wait for this one.
  deps.running.set(name, live);
  live
    .drive()
    .catch(async (error: unknown) => {
      deps.log.error("response fault", { request: command.requestId, response: live.id, stack: stackOf(error) });
      await live.broken();
    })
    .catch((error: unknown) => deps.log.error("response fault", { response: live.id, stack: stackOf(error) }))
    .finally(() => deps.running.delete(name));
  return await live.answered;
}

/** The answer of the response that runs with this key, the same for all requests with it. */
async function behind(deps: LlmDeps, command: RespondCommand, running: RunningResponse): Promise<ResponseOutcome> {
  if (Buffer.compare(running.digest, command.digest) !== 0) {
    // Before it is recorded it is not known whether the key is its own.
    const hasKey = await inTime(deps, running.hasKey);
    if (hasKey === undefined) return stillRuns();
    return hasKey ? conflict() : respond(deps, command);
  }
  const ended = await inTime(deps, running.ended);
  if (!ended) return stillRuns();
  if (ended instanceof Failure) return ended;
  if ("object" in ended) return replay(deps, command, ended.object);
  return respond(deps, command);
}

/** undefined: the wait has lasted for its bound. */
async function inTime<T>(deps: LlmDeps, promise: Promise<T>): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const { over } = deps.lifecycle;
  const stop = () => resolve(undefined);
  const disarm = deps.clock.after(LIMITS.llmKeyWaitMs, stop);
  over.addEventListener("abort", stop);
  const outcome = await Promise.race([promise, late]);
  over.removeEventListener("abort", stop);
  disarm();
  return outcome;
}

/** The job as it is now; a stream waits for its end. */
function job(deps: LlmDeps, { request, accountId }: RespondCommand, known: StoredResponse): ResponseOutcome {
  const text = shownText(known);
  if (text === undefined) return terminal();
  if (!request.stream) return { object: text, replayed: true };
  // Written by this service (`newObject`, `endedObject`).
  return watch(deps, { accountId, object: JSON.parse(text) as ResponseObject, replayed: true });
}

function replay(deps: LlmDeps, { request, accountId }: RespondCommand, object: string): ResponseOutcome {
  if (!request.stream) return { object, replayed: true };
  const free = deps.readers.take(accountId);
  if (typeof free === "string") return tooMany(free, "streams");
  // Written by this service (`endedObject`).
  const response = JSON.parse(object) as ResponseObject;
  const flow = new EventFlow(deps.clock, free);
  const begun = begunOf(response);
  flow.push({ type: "response.created", response: begun });
  flow.push({ type: "response.in_progress", response: begun });
  replayOutput(response, (event) => flow.push(event));
  flow.push(terminalEvent(response));
  flow.end("done");
  return { flow, id: response.id, replayed: true };
}
