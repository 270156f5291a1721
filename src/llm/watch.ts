/** A background job as clients see it: its object as it is now, and the buffered stream that tells its end. */
import { LIMITS } from "../limits.ts";
import type { Failure, Row } from "../std/failure.ts";
import { StoreDown } from "../store/store.ts";
import type { ResponseStream } from "./command.ts";
import type { LlmDeps } from "./deps.ts";
import { LLM, tooMany } from "./errors.ts";
import type { ErrorEvent } from "./output/events.ts";
import { EventFlow } from "./output/flow.ts";
import type { ResponseObject } from "./output/object.ts";
import { begunOf, replayOutput, terminalEvent } from "./output/replay.ts";
import type { ResponseKey, StoredResponse } from "./store/records.ts";

/** The object as JSON: the stored text itself, which is megabytes at most, unless a queued job was taken meanwhile. */
export function shownText(stored: Pick<StoredResponse, "state" | "object">): string | undefined {
  return stored.state === "running" && stored.object ? JSON.stringify(shownObject(stored)) : stored.object;
}

/** undefined: it ended without a response. A queued job that was taken is in progress. */
function shownObject({ state, object: text }: Pick<StoredResponse, "state" | "object">): ResponseObject | undefined {
  if (text === undefined) return undefined;
  // Written by this service (`newObject`, `endedObject`).
  const object = JSON.parse(text) as ResponseObject;
  return state === "running" && object.status === "queued" ? { ...object, status: "in_progress" } : object;
}

interface WatchedJob {
  readonly accountId: string;
  /** The present object. */
  readonly object: ResponseObject;
  readonly replayed: boolean;
}

/** The stream of a job: its present state, then, when it has ended, its whole output. A reader that leaves ends nothing. */
export function watch(deps: LlmDeps, watched: WatchedJob): ResponseStream | Failure {
  const free = deps.readers.take(watched.accountId);
  if (typeof free === "string") return tooMany(free, "streams");
  const { id } = watched.object;
  let left = false;
  const flow = new EventFlow(deps.clock, () => {
    left = true;
    free();
    deps.watchers.tell(id);
  });
  follow(deps, watched, flow, () => left).catch((error: unknown) => {
    deps.log.error("stream fault", { response: id, stack: String(error) });
    cut(flow, LLM.stream_unavailable, "the stream failed because of a bug of the service", GOES_ON);
  });
  return { flow, id, replayed: watched.replayed };
}

/** How often the store may fail to say how the job is, one time after another. */
const FAILURES_MAX = 3;

async function follow(
  deps: LlmDeps,
  { accountId, object }: WatchedJob,
  flow: EventFlow,
  left: () => boolean,
): Promise<void> {
  const { clock, store, watchers, lifecycle } = deps;
  const overMs = clock.monotonicMs() + LIMITS.llmStreamMs;
  const { id } = object;
  const queued = object.status === "queued";
  const first = queued ? object : begunOf(object);
  flow.push({ type: "response.created", response: first });
  flow.push({ type: queued ? "response.queued" : "response.in_progress", response: first });
  flow.flush();
  for (let failures = 0; !left(); ) {
    const found = await store.responseState({ id, accountId });
    const down = found instanceof StoreDown;
    failures = down ? failures + 1 : 0;
    if (lifecycle.over.aborted) return cut(flow, LLM.stream_unavailable, "the service is shutting down", LOOK);
    if (!found) return cut(flow, LLM.stream_unavailable, "the job is not there any more", LOOK);
    if (failures >= FAILURES_MAX) return cut(flow, LLM.stream_unavailable, "the stream cannot read the job", GOES_ON);
    if (!down && (found.state === "done" || found.state === "ended")) return await ended(deps, { id, accountId }, flow);
    if (clock.monotonicMs() >= overMs)
      return cut(flow, LLM.stream_timeout, "the connection has lasted for 30 minutes", GOES_ON);
    await watchers.moved(id, !down && found.owner === deps.owner ? "here" : "elsewhere");
  }
}

async function ended({ store }: LlmDeps, key: ResponseKey, flow: EventFlow): Promise<void> {
  const found = await store.response(key);
  const object = found && !(found instanceof StoreDown) ? shownObject(found) : undefined;
  if (!object) return cut(flow, LLM.stream_unavailable, "the response cannot be read", LOOK);
  replayOutput(object, (event) => flow.push(event));
  flow.push(terminalEvent(object));
  flow.end("done");
}

const GOES_ON = "the job goes on: poll the response, or repeat the request with the same key";
const LOOK = "poll the response, or repeat the request with the same key, to see what became of it";

/** The last event of a stream that does not tell the end of its job. */
function cut(flow: EventFlow, { wire: code, type }: Row, why: string, next: string): void {
  const message = `${why}; ${next}`;
  const event: ErrorEvent = { type: "error", code, message, param: null, error: { type, code, message, param: null } };
  flow.push(event);
  flow.end("cut");
}
