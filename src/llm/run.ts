/** One call to a provider, with its drills: from a request to an answer with its usage, or to a failure. */

import { LIMITS } from "../limits.ts";
import { sleep } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import type { Caller, LlmDeps } from "./deps.ts";
import { LLM } from "./errors.ts";
import { Draft } from "./output/draft.ts";
import type { ItemEvent } from "./output/events.ts";
import type { OutputItem } from "./output/items.ts";
import type { IncompleteReason } from "./output/object.ts";
import { Fault } from "./provider/fault.ts";
import type { Provider } from "./provider/provider.ts";
import type { LlmRequest } from "./request.ts";
import { estimatedUsage, inputTokensMax, type LlmUsage } from "./usage.ts";

export interface RunOptions {
  readonly request: LlmRequest;
  readonly provider: Provider;
  readonly caller: Caller;
  /** The call must not reach the provider twice. */
  readonly once: boolean;
  /** Stops the call. */
  readonly signal: AbortSignal;
  /** Receives each event, and a call of `moved` when events can be sent. */
  readonly reader?: { emit(event: ItemEvent): void; moved(): void };
}

export interface Answer {
  readonly output: readonly OutputItem[];
  readonly incomplete: IncompleteReason | undefined;
  readonly usage: LlmUsage;
  /** The usage is the service's own estimate. */
  readonly estimated: boolean;
}

/** A failed call, and the output that had come. */
export interface RunFailure {
  readonly failure: Failure;
  readonly output: readonly OutputItem[];
}

export async function run(deps: LlmDeps, options: RunOptions): Promise<Answer | RunFailure> {
  const { clock, calls, estimates } = deps;
  const { request, provider, caller, once, signal, reader } = options;
  const { model } = request;
  const emit = reader && ((event: ItemEvent) => reader.emit(event));
  const draft = new Draft({ makeId: (prefix) => makeId(prefix, clock), emit });
  const cut = strikes(deps, caller, "upstream_cut");
  const inputMax = inputTokensMax(request, provider.config);
  const moved = () => {
    reader?.moved();
    return cut && draft.length > 0 ? new Fault("invalid", "the drill upstream_cut") : undefined;
  };
  const ending = (await drilled(deps, caller)) ?? (await provider.run({ request, draft, once, signal, moved }));
  if (ending instanceof Fault) {
    calls.inc({ model, outcome: ending.kind });
    draft.abandon();
    return { failure: ending.failure(), output: draft.output };
  }
  calls.inc({ model, outcome: "answered" });
  const { incomplete } = ending;
  draft.finish(incomplete ? "incomplete" : "completed");
  reader?.moved();
  const { output } = draft;
  if (ending.usage) return { output, incomplete, usage: ending.usage, estimated: false };
  estimates.inc({ model });
  const usage = estimatedUsage(inputMax, draft.length);
  return { output, incomplete, usage, estimated: true };
}

async function drilled(deps: LlmDeps, caller: Caller): Promise<Fault | undefined> {
  if (strikes(deps, caller, "upstream_slow")) await sleep(deps.clock, LIMITS.slowUpstreamMs);
  if (strikes(deps, caller, "upstream_unavailable")) return new Fault("unavailable", "the drill upstream_unavailable");
  return strikes(deps, caller, "upstream_rejected") ? new Fault("rejected", "the drill upstream_rejected") : undefined;
}

function strikes({ drills }: LlmDeps, caller: Caller, name: Parameters<LlmDeps["drills"]["strikes"]>[0]): boolean {
  return drills.strikes(name, { accountId: caller.accountId, model: "", sessionId: caller.key, step: 0 });
}

/** The failure of a response whose process has ended. Its provider may have been called, so it does not run again. */
export function stopped(): Failure {
  const message =
    "the service stopped while the response ran; it is not run again, nothing was charged, send it with a new key";
  return new Failure(LLM.response_lost, message);
}
