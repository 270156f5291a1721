/** One call to a provider, with its drills: from a request to an answer with its usage, or to a failure. */
import { LIMITS } from "../limits.ts";
import { sleep } from "../std/clock.ts";
import type { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import type { LlmDeps } from "./deps.ts";
import { Draft } from "./output/draft.ts";
import type { ItemEvent } from "./output/events.ts";
import { type Answer, bytesOf, type OutputItem } from "./output/object.ts";
import { Fault } from "./provider/fault.ts";
import type { Provider } from "./provider/provider.ts";
import type { LlmRequest } from "./request.ts";
import { estimatedUsage, inputTokensMax } from "./usage.ts";

export interface CallOptions {
  readonly request: LlmRequest;
  readonly provider: Provider;
  /** Its account and its `Idempotency-Key`, for drills. */
  readonly caller: { readonly accountId: string; readonly key: string };
  /** Receives each event, and a call of `moved` when events can be sent. */
  readonly reader?: { emit(event: ItemEvent): void; moved(): void } | undefined;
}

/** A failed call, and the output that had come. */
export interface FailedCall {
  readonly failure: Failure;
  readonly output: readonly OutputItem[];
}

/** The call is stopped at the end of the service. */
export async function callProvider(deps: LlmDeps, options: CallOptions): Promise<Answer | FailedCall> {
  const { clock, calls, estimates, lifecycle } = deps;
  const { request, provider, caller, reader } = options;
  const { model } = request;
  const draft = new Draft({
    makeId: (prefix) => makeId(prefix, clock),
    emit: reader && ((event) => reader.emit(event)),
  });
  const strikes = (drill: Parameters<LlmDeps["drills"]["strikes"]>[0]) =>
    deps.drills.strikes(drill, { accountId: caller.accountId, model: "", sessionId: caller.key, step: 0 });
  const cut = strikes("upstream_cut");
  const inputMax = inputTokensMax(request, provider.config);
  const moved = () => {
    reader?.moved();
    return cut && draft.length > 0 ? new Fault("invalid", "the drill upstream_cut") : undefined;
  };
  if (strikes("upstream_slow")) await sleep(clock, LIMITS.slowUpstreamMs);
  const drilled = (["unavailable", "rejected"] as const).find((kind) => strikes(`upstream_${kind}`));
  const ending = drilled
    ? new Fault(drilled, `the drill upstream_${drilled}`)
    : await provider.answer({ request, accountId: caller.accountId, draft, signal: lifecycle.over, moved });
  if (ending instanceof Fault) {
    calls.inc({ model, outcome: ending.kind });
    draft.abandon();
    return { failure: ending.failure(), output: draft.output };
  }
  calls.inc({ model, outcome: "answered" });
  const { incomplete, usage } = ending;
  draft.finish(incomplete ? "incomplete" : "completed");
  reader?.moved();
  const { output } = draft;
  if (usage) return { output, incomplete, usage, estimated: false };
  estimates.inc({ model });
  return { output, incomplete, usage: estimatedUsage(inputMax, bytesOf(output)), estimated: true };
}
