/**
 * A live response from its submission to its durable end. It runs whether or not its client waits. Its end is stored before the client
 * gets it. Other requests with its key wait for it here.
 */
import type { Charge } from "../charge/charges.ts";
import { LIMITS } from "../limits.ts";
import { present } from "../std/assert.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { Known, RespondCommand, ResponseOutcome, ResponseText } from "./command.ts";
import type { Caller, LlmDeps, RunningResponse } from "./deps.ts";
import { LLM } from "./errors.ts";
import { notBegun, notRecorded, terminal, tooMany } from "./failures.ts";
import { EventFlow } from "./output/flow.ts";
import { endedObject, failedObject, newObject, type ResponseObject } from "./output/object.ts";
import { persist, type UnknownOutcome, unconfirmed } from "./persist.ts";
import type { Provider } from "./provider/provider.ts";
import type { LlmRequest } from "./request.ts";
import { type Answer, type RunFailure, run, stopped } from "./run.ts";
import { inputTokensMax } from "./usage.ts";

export class Live implements RunningResponse {
  readonly id: string;
  readonly digest: Uint8Array;
  private readonly begun: ResponseObject;
  /** The client's stream. */
  private readonly flow: EventFlow | undefined;
  private readonly answer = Promise.withResolvers<ResponseOutcome | Known>();
  private readonly end = Promise.withResolvers<ResponseText | Failure | Known>();
  private readonly recorded = Promise.withResolvers<boolean>();
  private readonly caller: Caller;
  /** Released when it is sent, since a request may be megabytes and a stream may last for half an hour. */
  private request: LlmRequest | undefined;
  /** Whether the stream has begun. Before that, a failure is an HTTP error. */
  private streaming = false;

  constructor(
    private readonly deps: LlmDeps,
    { request, digest, ...caller }: RespondCommand,
    private readonly provider: Provider,
  ) {
    const { clock } = deps;
    this.id = makeId("resp_", clock);
    this.digest = digest;
    this.caller = caller;
    this.request = request;
    this.begun = newObject(this.id, unixSeconds(clock), "in_progress", request);
    if (request.stream) this.flow = new EventFlow(clock);
  }

  /** What the client that sent it gets. */
  get answered(): Promise<ResponseOutcome | Known> {
    return this.answer.promise;
  }

  /** The end, for other requests with its key. It may come after the client's answer when the store was down. */
  get ended(): Promise<ResponseText | Failure | Known> {
    return this.end.promise;
  }

  /** Whether it is the response of its key, once that is known. */
  get hasKey(): Promise<boolean> {
    return this.recorded.promise;
  }

  /** Runs to the end. */
  async run(): Promise<void> {
    const { lifecycle } = this.deps;
    lifecycle.enter();
    try {
      const charge = await this.submitted();
      const refused = charge instanceof Failure || "known" in charge;
      this.recorded.resolve(!refused);
      if (refused) this.over(charge);
      else await this.placed(charge);
    } finally {
      lifecycle.leave();
    }
  }

  /** Ends a response after a bug: the hold is released, and the key is spent, since the provider may have been called. */
  async broken(error: unknown): Promise<void> {
    const { deps, id, begun } = this;
    const { accountId } = this.caller;
    const failure = stopped();
    const object = this.streaming ? JSON.stringify(failedObject(begun, failure)) : undefined;
    this.answer.reject(error);
    this.recorded.resolve(true);
    if (this.streaming) this.fail(failure, []);
    const at = seenSeconds(deps.clock);
    const end = { id, accountId, owner: deps.owner, at, object, key: "terminal" } as const;
    await persist(deps, id, () => deps.store.end(end)).last;
    this.over(terminal());
  }

  private async placed(charge: Charge): Promise<void> {
    const free = this.deps.places.take(this.caller.accountId);
    if (typeof free === "string") return this.failed({ failure: tooMany(free, "responses"), output: [] });
    try {
      await this.called(charge);
    } finally {
      free();
    }
  }

  /** The charge, and the record of what is about to run, in one step. */
  private async submitted(): Promise<Charge | Failure | Known> {
    const { deps, provider, begun, id, digest } = this;
    const { accountId, key } = this.caller;
    const request = present(this.request, "a request that is not sent yet");
    const { config } = provider;
    const response = {
      id,
      accountId,
      model: request.model,
      key,
      digest,
      // Without a stream no client knows the id before the answer.
      object: this.flow ? JSON.stringify(begun) : undefined,
      createdAt: begun.created_at,
    };
    const max = { promptTokens: inputTokensMax(request, config), completionTokens: request.max_output_tokens };
    const holding = deps.charges.hold<Known | { full: "account" | "all" } | UnknownOutcome>(
      // The record ends the hold, after a restart as well: no clock that jumps can end it before.
      { chargeId: id, accountId, item: request.model, rates: config.rates, max, deadlineMs: "none" },
      async (charge) => unconfirmed(await deps.store.submit({ charge, response, owner: deps.owner })),
    );
    // Beside the store's work.
    provider.prepare(request);
    const held = await holding;
    if ("full" in held) return tooMany(held.full, "responses");
    if (!("reason" in held)) return held;
    const refused = notBegun(held.reason);
    this.answer.resolve(refused);
    // What may have been recorded is taken back before the key may be used again.
    await persist(deps, id, () => deps.store.withdraw({ response, owner: deps.owner, at: seenSeconds(deps.clock) }))
      .last;
    return refused;
  }

  private async called(charge: Charge): Promise<void> {
    const { deps, caller, provider, flow } = this;
    const reader = flow && {
      emit: (event: Parameters<EventFlow["push"]>[0]) => flow.push(event),
      moved: () => {
        this.begin();
        flow.flush();
      },
    };
    if (flow) {
      flow.push({ type: "response.created", response: this.begun });
      flow.push({ type: "response.in_progress", response: this.begun });
    }
    const request = present(this.request, "a request that is not sent yet");
    this.request = undefined;
    const options = { request, provider, caller, once: false, signal: deps.lifecycle.over };
    const late = deps.clock.after(LIMITS.llmKeepaliveMs, () => this.begin());
    const outcome = await run(deps, reader ? { ...options, reader } : options).finally(late);
    if ("failure" in outcome) await this.failed(outcome);
    else await this.completed(outcome, charge);
  }

  /** The client's stream begins: with the first piece of the answer, or when it has waited for long. */
  private begin(): void {
    if (this.streaming || !this.flow) return;
    this.streaming = true;
    this.answer.resolve({ flow: this.flow, id: this.id, replayed: false });
  }

  /** Makes price and answer durable in one step, then sends the end. */
  private async completed({ output, incomplete, usage, estimated }: Answer, charge: Charge): Promise<void> {
    const { deps, begun } = this;
    const object = endedObject(begun, { output, usage, incomplete, at: unixSeconds(deps.clock) });
    const text = JSON.stringify(object);
    const { inputTokens: promptTokens, cachedTokens, outputTokens: completionTokens } = usage;
    const { first, last } = persist(deps, this.id, () =>
      deps.charges.settle(charge, { promptTokens, cachedTokens, completionTokens }, (settlement) =>
        deps.store.complete({ ...settlement, owner: deps.owner, object: text, estimated }),
      ),
    );
    const told = await first;
    if (told === "kept") {
      const { flow } = this;
      this.begin();
      flow?.push({ type: incomplete ? "response.incomplete" : "response.completed", response: object });
      flow?.end("done");
      return this.over({ object: text, replayed: false });
    }
    this.fail(unkept(told), output);
    const kept = await last;
    this.over(kept === "kept" ? { object: text, replayed: false } : unkept(kept));
  }

  /** The money goes back, and the key is worth what the failure says: a provider that is not there may be asked again. */
  private async failed({ failure, output }: RunFailure): Promise<void> {
    const { deps, id } = this;
    const object = this.streaming ? JSON.stringify(failedObject(this.begun, failure, output)) : undefined;
    const key = failure.row === LLM.upstream_unavailable ? "free" : "terminal";
    const { accountId } = this.caller;
    const at = seenSeconds(deps.clock);
    const { first, last } = persist(deps, id, () =>
      deps.store.end({ id, accountId, owner: deps.owner, at, object, key }),
    );
    await first;
    this.fail(failure, output);
    await last;
    this.over(failure);
  }

  /** Tells the client. */
  private fail(failure: Failure, output: RunFailure["output"]): void {
    if (!this.streaming) {
      this.answer.resolve(failure);
      return;
    }
    const { requestId } = this.caller;
    this.deps.log.info("stream failed", {
      request: requestId,
      response: this.id,
      code: failure.code,
      detail: failure.detail ?? "",
    });
    this.flow?.push({ type: "response.failed", response: failedObject(this.begun, failure, output) });
    this.flow?.end("done");
  }

  private over(outcome: ResponseText | Failure | Known): void {
    this.answer.resolve(outcome);
    this.end.resolve(outcome);
    if (!this.streaming) this.flow?.close().catch(() => {});
    this.deps.watchers.tell(this.id);
  }
}

/** `lost`: another process took this one to be dead, and has spent the key. */
function unkept(outcome: StoreDown | "lost"): Failure {
  return outcome instanceof StoreDown ? notRecorded(outcome.reason) : terminal();
}
