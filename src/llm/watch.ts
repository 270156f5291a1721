/** A background job as clients see it: its object as it is now, and the buffered stream that tells its end. */
import type { Row } from "../error/core.ts";
import { LLM } from "../error/llm.ts";
import { LIMITS } from "../limits.ts";
import type { StoredResponse } from "../store/llm/records.ts";
import { StoreDown } from "../store/store.ts";
import type { Streamed } from "./command.ts";
import type { LlmDeps } from "./deps.ts";
import type { ErrorEvent } from "./output/events.ts";
import { EventFlow } from "./output/flow.ts";
import type { ResponseObject } from "./output/object.ts";
import { begunOf, replayOutput, terminalEvent } from "./output/replay.ts";

/** undefined: it ended without a response. A queued job that was taken is in progress. */
export function shownObject({
  state,
  object: text,
}: Pick<StoredResponse, "state" | "object">): ResponseObject | undefined {
  if (text === undefined) return undefined;
  // Written by this service (`newObject`, `endedObject`).
  const object = JSON.parse(text) as ResponseObject;
  return state === "running" && object.status === "queued" ? { ...object, status: "in_progress" } : object;
}

interface Watched {
  readonly accountId: string;
  /** As it is now. */
  readonly object: ResponseObject;
  readonly replayed: boolean;
}

/** The stream of a job: its state now, then, when it has ended, its whole output. Its reader's leaving ends nothing. */
export function watch(deps: LlmDeps, watched: Watched): Streamed {
  let left = false;
  const flow = new EventFlow(deps.clock, () => {
    left = true;
  });
  const { id } = watched.object;
  follow(deps, watched, flow, () => left).catch((error: unknown) => {
    deps.log.error("stream fault", { response: id, stack: String(error) });
    cut(flow, LLM.stream_unavailable, "the stream failed because of a bug of the service");
  });
  return { flow, id, replayed: watched.replayed };
}

/** How often the store may fail to say how the job is, one time after another. */
const FAILURES_MAX = 3;

async function follow(
  { clock, store, watchers, lifecycle }: LlmDeps,
  { accountId, object }: Watched,
  flow: EventFlow,
  left: () => boolean,
): Promise<void> {
  const overMs = clock.monotonicMs() + LIMITS.llmStreamMs;
  const { id } = object;
  const queued = object.status === "queued";
  const first = queued ? object : begunOf(object);
  flow.push({ type: "response.created", response: first });
  flow.push({ type: queued ? "response.queued" : "response.in_progress", response: first });
  flow.flush();
  for (let failures = 0; !left(); await watchers.moved(id)) {
    const found = await store.response({ id, accountId });
    failures = found instanceof StoreDown ? failures + 1 : 0;
    const gone = !found || failures >= FAILURES_MAX;
    if (gone || lifecycle.over.aborted)
      return cut(flow, LLM.stream_unavailable, "the stream cannot read the job any more");
    if (!(found instanceof StoreDown) && (found.state === "done" || found.state === "ended")) return ended(flow, found);
    if (clock.monotonicMs() >= overMs) return cut(flow, LLM.stream_timeout, "the connection has lasted for 30 minutes");
  }
}

function ended(flow: EventFlow, found: StoredResponse): void {
  const object = shownObject(found);
  if (!object) {
    cut(flow, LLM.stream_unavailable, "the job has left no response");
    return;
  }
  replayOutput(object, (event) => flow.push(event));
  flow.push(terminalEvent(object));
  flow.end("done");
}

/** The last event of a stream whose job goes on. */
function cut(flow: EventFlow, { wire: code, type }: Row, why: string): void {
  const message = `${why}; the job goes on: poll the response, or repeat the request with the same key`;
  const event: ErrorEvent = { type: "error", code, message, param: null, error: { type, code, message, param: null } };
  flow.push(event);
  flow.end("cut");
}
