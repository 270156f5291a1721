/** `POST /v1/responses` behind its checks: exactly one response for each key, live or as a background job. */
import { LIMITS } from "../limits.ts";
import { Failure } from "../std/failure.ts";
import { stackOf } from "../std/log.ts";
import { StoreDown } from "../store/store.ts";
import type { RespondCommand, ResponseOutcome } from "./command.ts";
import type { LlmDeps, RunningResponse } from "./deps.ts";
import { conflict, drilledMoney, stillRuns, storeDown, terminal, unconfigured } from "./errors.ts";
import { submitJob } from "./jobs.ts";
import { Live } from "./live.ts";
import { isBackground } from "./models.ts";
import { parsedObject } from "./output/object.ts";
import type { Known, StoredResponse } from "./store/records.ts";
import { shownText, watch } from "./watch.ts";

export async function respond(deps: LlmDeps, command: RespondCommand): Promise<ResponseOutcome> {
  const { request, accountId, key } = command;
  const { clock, lifecycle, store, watchers } = deps;
  const deadlineMs = clock.monotonicMs() + LIMITS.llmKeyWaitMs;
  const name = `${accountId}\n${key}`;
  let found: StoredResponse | undefined;
  for (;;) {
    if (!found) {
      const running = deps.running.get(name);
      const outcome = await (running ? behind(deps, command, running, deadlineMs) : answer(deps, command, name));
      if (outcome === "free") continue;
      if (!("is" in outcome)) return outcome;
      found = outcome.response;
    }
    if (Buffer.compare(found.digest, command.digest) !== 0) return conflict();
    if (found.state === "done" || isBackground(request.model)) return replay(deps, command, found);
    if (found.state === "ended") return terminal();
    if (clock.monotonicMs() >= deadlineMs || lifecycle.over.aborted) return stillRuns();
    // It runs in another process, or in one that has ended and whose responses are yet to be ended.
    await watchers.moved(found.id);
    const next = await store.responseOfKey({ accountId, key });
    // Only a key that is free is asked for by a submission, which is a write.
    if (!(next instanceof StoreDown)) found = next;
  }
}

/** A new response, or the one that the key has. */
async function answer(deps: LlmDeps, command: RespondCommand, name: string): Promise<ResponseOutcome | Known> {
  const { model } = command.request;
  const provider = deps.providers.get(model);
  const refused = provider ? drilledMoney((drill) => deps.drills.strikes(drill)) : unconfigured(model);
  if (!provider || refused) {
    // What the key has already is returned all the same.
    const response = await deps.store.responseOfKey(command);
    if (response instanceof StoreDown) return storeDown(response);
    return response ? { is: "known", response } : (refused ?? unconfigured(model));
  }
  if (isBackground(model)) {
    const submitted = await submitJob(deps, command, provider);
    if (submitted instanceof Failure || "is" in submitted) return submitted;
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

/** The answer of the response that runs with this key, the same for all requests with it. `free`: it did not get the key. */
async function behind(
  deps: LlmDeps,
  command: RespondCommand,
  running: RunningResponse,
  deadlineMs: number,
): Promise<ResponseOutcome | Known | "free"> {
  if (Buffer.compare(running.digest, command.digest) !== 0) {
    // Before it is recorded it is not known whether the key is its own.
    const hasKey = await inTime(deps, running.hasKey, deadlineMs);
    if (hasKey === undefined) return stillRuns();
    return hasKey ? conflict() : "free";
  }
  const ended = (await inTime(deps, running.ended, deadlineMs)) ?? stillRuns();
  return "object" in ended ? replay(deps, command, { state: "done", object: ended.object }) : ended;
}

/** undefined: the wait has lasted for its bound. */
async function inTime<T>(deps: LlmDeps, promise: Promise<T>, deadlineMs: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const { over } = deps.lifecycle;
  const stop = () => resolve(undefined);
  const disarm = deps.clock.after(Math.max(0, deadlineMs - deps.clock.monotonicMs()), stop);
  over.addEventListener("abort", stop);
  const outcome = await Promise.race([promise, late]);
  over.removeEventListener("abort", stop);
  disarm();
  return outcome;
}

/** The response as it is now; the stream of a job waits for its end. */
function replay(
  deps: LlmDeps,
  { request, accountId }: RespondCommand,
  known: Pick<StoredResponse, "state" | "object">,
): ResponseOutcome {
  const text = shownText(known);
  if (text === undefined) return terminal();
  if (!request.stream) return { object: text, replayed: true };
  const object = deps.unpaid.timer(accountId)(() => parsedObject(text));
  return watch(deps, { accountId, object, replayed: true });
}
