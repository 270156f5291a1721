/** A response as its clients see it: its object as it is now, and the buffered stream that tells its end. */
import { LIMITS } from "../limits.ts";
import type { Failure, Row } from "../std/failure.ts";
import type { Timer } from "../std/slices.ts";
import { StoreDown } from "../store/store.ts";
import type { ResponseStream } from "./command.ts";
import type { LlmDeps } from "./deps.ts";
import { LLM, tooMany } from "./errors.ts";
import type { ErrorEvent } from "./output/events.ts";
import { EventFlow } from "./output/flow.ts";
import { parsedObject, type ResponseObject } from "./output/object.ts";
import { begunOf, replayEnd } from "./output/replay.ts";
import type { ResponseKey, StoredResponse } from "./store/records.ts";

/** No word of a client stands before the status (`newObject`). */
const QUEUED = /^({"id":"\w+","object":"response","created_at":\d+,"completed_at":null,"status":)"queued"/;

/**
 * The object as JSON; undefined: it ended without a response. A queued job that was taken is in progress. The text can be megabytes and
 * is asked for every second, so it is not parsed.
 */
export function shownText({ state, object }: Pick<StoredResponse, "state" | "object">): string | undefined {
  return state === "running" ? object?.replace(QUEUED, '$1"in_progress"') : object;
}

interface Watched extends Pick<ResponseKey, "accountId"> {
  /** The present object. */
  readonly object: ResponseObject;
  readonly replayed: boolean;
  /** Events up to this number are not sent. */
  readonly after?: number | undefined;
}

/**
 * The stream of a response: its present state, then, when it has ended, its whole output. A reader that leaves ends nothing. A repeat is
 * unpaid work.
 */
export function watch(deps: LlmDeps, watched: Watched): ResponseStream | Failure {
  const { accountId, object, replayed, after } = watched;
  const free = deps.readers.take(accountId);
  if (typeof free === "string") return tooMany(free, "streams");
  const { id, status } = object;
  const timed: Timer = replayed ? deps.unpaid.timer(accountId) : (work) => work();
  const leave = () => {
    free();
    deps.watchers.tell(id);
  };
  const flow = new EventFlow(deps.clock, leave, timed, after);
  const queued = status === "queued";
  const first = queued ? object : begunOf(object);
  flow.push({ type: "response.created", response: first });
  flow.push({ type: queued ? "response.queued" : "response.in_progress", response: first });
  if (!queued && status !== "in_progress") timed(() => replayEnd(object, flow));
  else
    follow(deps, { id, accountId }, flow, timed).catch((error: unknown) => {
      deps.log.error("stream fault", { response: id, stack: String(error) });
      cut(flow, LLM.stream_unavailable, "the stream failed because of a bug of the service", GOES_ON);
    });
  return { flow, id, replayed };
}

/** How often the store may fail to say how the job is, one time after another. */
const FAILURES_MAX = 3;

async function follow(deps: LlmDeps, key: ResponseKey, flow: EventFlow, timed: Timer): Promise<void> {
  const { clock, store, watchers, lifecycle } = deps;
  const overMs = clock.monotonicMs() + LIMITS.llmStreamMs;
  for (let failures = 0; flow.open; ) {
    const found = await store.responseState(key);
    const down = found instanceof StoreDown;
    failures = down ? failures + 1 : 0;
    if (lifecycle.over.aborted) return cut(flow, LLM.stream_unavailable, "the service is shutting down", LOOK);
    if (!found) return cut(flow, LLM.stream_unavailable, "the job is not there any more", LOOK);
    if (failures >= FAILURES_MAX) return cut(flow, LLM.stream_unavailable, "the stream cannot read the job", GOES_ON);
    if (!down && (found.state === "done" || found.state === "ended")) return await ended(deps, key, flow, timed);
    if (clock.monotonicMs() >= overMs)
      return cut(flow, LLM.stream_timeout, "the connection has lasted for 30 minutes", GOES_ON);
    await watchers.moved(key.id, !down && found.owner === deps.owner ? "here" : "elsewhere");
  }
}

async function ended({ store }: LlmDeps, key: ResponseKey, flow: EventFlow, timed: Timer): Promise<void> {
  const found = await store.response(key);
  const text = found && !(found instanceof StoreDown) ? found.object : undefined;
  if (text === undefined) return cut(flow, LLM.stream_unavailable, "the response cannot be read", LOOK);
  timed(() => replayEnd(parsedObject(text), flow));
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
