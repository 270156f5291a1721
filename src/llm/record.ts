/** What is recorded of a response: its submission, with its hold, and its end. A write is repeated as long as the process lives. */
import { type Charge, untilDone } from "../charge/charges.ts";
import type { HoldOutcome, NewCharge } from "../charge/store/records.ts";
import { LIMITS } from "../limits.ts";
import { sleep, unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { RespondCommand } from "./command.ts";
import type { LlmDeps } from "./deps.ts";
import { tooMany } from "./errors.ts";
import { isBackground } from "./models.ts";
import { type Answer, endedObject, newObject, type ResponseObject } from "./output/object.ts";
import type { Provider } from "./provider/provider.ts";
import type { LlmRequest } from "./request.ts";
import type { Ending, Job, Known, NewResponse, ResponseKey, Submitted } from "./store/records.ts";
import { inputTokensMax } from "./usage.ts";

/** What a hold ends in. `unsaid`: the store has not said whether it has done the write. */
export type Held =
  | { readonly is: "held"; readonly charge: Charge }
  | { readonly is: "failed"; readonly failure: Failure }
  | { readonly is: "unsaid"; readonly reason: string }
  | Known;

export function begin({ clock }: Pick<LlmDeps, "clock">, request: LlmRequest): ResponseObject {
  const status = isBackground(request.model) ? "queued" : "in_progress";
  return newObject(makeId("resp_", clock), unixSeconds(clock), status, request);
}

/** `object` is that of a response whose id the client knows before the answer. */
export function newRecord(
  { accountId, key, digest }: Pick<RespondCommand, "accountId" | "key" | "digest">,
  { id, created_at: createdAt }: ResponseObject,
  { model, store }: LlmRequest,
  object: string | undefined,
): NewResponse {
  return { id, accountId, model, key, digest, object, hidden: store === false, createdAt };
}

/** Holds the most that the response can cost, and records it by `open` in the same step. */
export async function hold(
  { charges }: Pick<LlmDeps, "charges">,
  { config }: Provider,
  request: LlmRequest,
  { id: chargeId, accountId }: ResponseKey,
  open: (charge: NewCharge) => Promise<Submitted | StoreDown>,
): Promise<Held> {
  const max = { promptTokens: inputTokensMax(request, config), completionTokens: request.max_output_tokens };
  const held = await charges.hold<Exclude<Submitted, { is: HoldOutcome }> | Extract<Held, { is: "unsaid" }>>(
    // The record ends the hold, after a restart as well: no clock that jumps can end it before.
    { chargeId, accountId, item: request.model, rates: config.rates, max, deadlineMs: "none" },
    async (charge) => {
      const outcome = await open(charge);
      if (!(outcome instanceof StoreDown))
        return outcome.is === "known" || outcome.is === "full" ? outcome : outcome.is;
      // The write may have been done.
      return outcome.outcomeUnknown ? { is: "unsaid", reason: outcome.reason } : outcome;
    },
  );
  if (held instanceof Failure) return { is: "failed", failure: held };
  if (!("is" in held)) return { is: "held", charge: held };
  return held.is === "full" ? { is: "failed", failure: tooMany(held.bound, "jobs") } : held;
}

/** Makes price and answer durable in one step. */
export function complete(deps: LlmDeps, charge: Charge, begun: ResponseObject, answer: Answer) {
  const object = endedObject(begun, answer, unixSeconds(deps.clock));
  const text = JSON.stringify(object);
  const written = persist(deps, begun.id, () =>
    deps.charges.settle(charge, answer.usage, (settlement) =>
      deps.store.complete({ ...settlement, owner: deps.owner, object: text, estimated: answer.estimated }),
    ),
  );
  return { object, text, ...written };
}

/** Gives the money back, and records what is shown of the response, if anything is, and what its key is worth. */
export function end(
  deps: LlmDeps,
  { id, accountId }: ResponseKey,
  object: ResponseObject | undefined,
  key: Ending["key"],
) {
  const at = seenSeconds(deps.clock);
  const text = object && JSON.stringify(object);
  return persist(deps, id, () => deps.store.end({ id, accountId, owner: deps.owner, at, object: text, key }));
}

/** Puts a job back to the queue, which nobody takes before `dueMs` of seen time. */
export function putBack(deps: LlmDeps, { id, accountId, repeats }: Job, dueMs: number) {
  return persist(deps, id, () => deps.store.jobPutBack({ id, accountId, owner: deps.owner, repeats, dueMs }));
}

/** Between two tries; the store itself has tried for longer than a second. */
const PAUSE_MS = 500;

/** The outcomes of the first try and of the last one. The last is a `StoreDown` only when the process ends. */
export function persist<R>(
  { clock, log, lifecycle }: Pick<LlmDeps, "clock" | "log" | "lifecycle">,
  id: string,
  write: () => Promise<R | StoreDown>,
): { readonly first: Promise<R | StoreDown>; readonly last: Promise<R | StoreDown> } {
  const first = write();
  const again = async () => {
    let outcome = await first;
    while (outcome instanceof StoreDown && !lifecycle.over.aborted) {
      log.error("response not recorded yet", { response: id, reason: outcome.reason });
      await sleep(clock, PAUSE_MS);
      outcome = await write();
    }
    return outcome;
  };
  const last = again();
  // A caller that awaits only the first try gets its error there.
  last.catch(() => {});
  return { first, last };
}

/** Deletes what ended more than `days` ago, or a day where nobody can read it, in bounded parts, between which others write. */
export async function forgetResponses(
  { store, clock, log }: Pick<LlmDeps, "store" | "clock" | "log">,
  days: number,
): Promise<void> {
  const now = seenSeconds(clock);
  const hidden = { before: now - LIMITS.llmHiddenSeconds, only: "hidden" } as const;
  for (const old of [{ before: now - days * 86_400 }, hidden])
    await untilDone(log, "old responses not deleted", () => store.responsesForget(old));
}
