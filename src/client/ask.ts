/**
 * A question to a language model and its whole answer, live or in the background. A request whose connection broke is repeated once,
 * with the key of the first: the service runs a response once for each key.
 */
import { type Clock, systemClock } from "../std/clock.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { ErrorReply, NoAnswer, type Service } from "./http.ts";
import { type Listener, streamed } from "./response-stream.ts";
import { isOpen, type Question, type ResponseObject, retrieve, submit } from "./responses.ts";
import { pause } from "./waiting.ts";

export interface Asking {
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** Ends the asking, not the response; what is returned then means nothing. */
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/** Before a repeat: a service that was restarted listens again soon. */
const REPEAT_MS = 1_000;
/** Between two looks at a background response: the first pause, and the longest. */
const LOOK_MS = [250, 2_000] as const;
/** How long the service may be unable to say how a background response is. */
const LOST_MS = 60_000;

/** The service still runs a request with the key, or cannot say yet whether it will. */
const UNKNOWN = "submission_outcome_unknown";

/** Asks a live model; each piece of the answer is heard once, also over a repeat. */
export async function askLive(
  service: Service,
  question: Question,
  listener: Listener,
  { key, signal, clock = systemClock }: Asking,
): Promise<ResponseObject | Problem> {
  const once = new HeardOnce(listener);
  const attempt = () => streamed(service, question, { key, signal, clock, listener: once.next() });
  return await repeated(attempt, { signal, clock });
}

/** Submits to a background model and looks until it has ended. */
export async function askInBackground(
  service: Service,
  question: Question,
  begun: (id: string) => void,
  { key, signal, clock = systemClock }: Asking,
): Promise<ResponseObject | Problem> {
  let response = await repeated(() => submit(service, question, { key, signal }), { signal, clock });
  if (response instanceof Problem) return response;
  const { id } = response;
  begun(id);
  let pauseMs: number = LOOK_MS[0];
  let seenMs = clock.monotonicMs();
  while (isOpen(response)) {
    await pause(clock, pauseMs, signal);
    pauseMs = Math.min(1.5 * pauseMs, LOOK_MS[1]);
    const now: ResponseObject | Problem = await retrieve(service, id, signal);
    if (signal.aborted) return response;
    if (!(now instanceof Problem)) {
      response = now;
      seenMs = clock.monotonicMs();
    } else if (!passes(now) || clock.monotonicMs() - seenMs > LOST_MS) return now;
  }
  return response;
}

/** Whether another look may succeed. */
function passes(problem: Problem): boolean {
  if (problem instanceof ErrorReply) return problem.status === 429 || problem.status >= 500;
  return problem.exit === EXIT.unreachable;
}

async function repeated(
  attempt: () => Promise<ResponseObject | Problem>,
  { signal, clock }: { readonly signal: AbortSignal; readonly clock: Clock },
): Promise<ResponseObject | Problem> {
  let brokenBefore = false;
  for (;;) {
    const outcome = await attempt();
    const broken = outcome instanceof NoAnswer && !outcome.nobodyListens;
    const unknown = outcome instanceof ErrorReply && outcome.code === UNKNOWN;
    if (!(unknown || (broken && !brokenBefore))) return outcome;
    brokenBefore ||= broken;
    await pause(clock, REPEAT_MS, signal);
    if (signal.aborted) return outcome;
  }
}

/**
 * The text of a response is the same in every stream of it: what an earlier one has brought is left out. A repeat can bring another
 * response, where the first one failed and left the key free: its text begins on a new line.
 */
class HeardOnce {
  private heard = 0;
  private id: string | undefined;

  constructor(private readonly listener: Listener) {}

  /** For the next stream. */
  next(): Listener {
    let at = 0;
    let other = false;
    return {
      begun: (id) => {
        other = this.id !== undefined && this.id !== id && this.heard > 0;
        if (other) this.heard = 0;
        this.id = id;
        return this.listener.begun(id);
      },
      text: async (piece) => {
        if (other) await this.listener.text("\n");
        other = false;
        const fresh = piece.slice(Math.max(0, this.heard - at));
        at += piece.length;
        this.heard = Math.max(this.heard, at);
        if (fresh !== "") await this.listener.text(fresh);
      },
    };
  }
}
