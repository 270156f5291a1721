/**
 * A live response from its submission to its durable end, whether or not its client waits. Its end is stored before the client gets it.
 * Other requests with its key wait for it here.
 */
import { billingDown, type Charge } from "../charge/charges.ts";
import { LIMITS } from "../limits.ts";
import { present } from "../std/assert.ts";
import type { Failure } from "../std/failure.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import type { StoreDown } from "../store/store.ts";
import { callProvider, type FailedCall } from "./call.ts";
import type { RespondCommand, ResponseOutcome, ResponseText } from "./command.ts";
import type { LlmDeps, RunningResponse } from "./deps.ts";
import { bug, terminal, tooMany, unsaid } from "./errors.ts";
import { EventFlow } from "./output/flow.ts";
import { type Answer, failedObject, type ResponseObject } from "./output/object.ts";
import type { Provider } from "./provider/provider.ts";
import { begin, complete, end, type Held, hold, newRecord, persist } from "./record.ts";
import type { LlmRequest } from "./request.ts";
import type { Known } from "./store/records.ts";

export class Live implements RunningResponse {
  readonly id: string;
  readonly digest: Uint8Array;
  private readonly begun: ResponseObject;
  /** The client's stream. */
  private readonly flow: EventFlow | undefined;
  private readonly answer = Promise.withResolvers<ResponseOutcome | Known>();
  /** What the client that sent it gets. */
  readonly answered = this.answer.promise;
  private readonly end = Promise.withResolvers<ResponseText | Failure | Known>();
  /** The end, for other requests with its key. It may come after the client's answer when the store was down. */
  readonly ended = this.end.promise;
  private readonly recorded = Promise.withResolvers<boolean>();
  readonly hasKey = this.recorded.promise;
  private readonly command: Omit<RespondCommand, "request">;
  /** Released when it is sent, since a request may be megabytes and a stream may last for half an hour. */
  private request: LlmRequest | undefined;
  /** Whether the stream has begun. Before that, a failure is an HTTP error. */
  private streaming = false;

  constructor(
    private readonly deps: LlmDeps,
    { request, ...command }: RespondCommand,
    private readonly provider: Provider,
  ) {
    this.digest = command.digest;
    this.command = command;
    this.request = request;
    this.begun = begin(deps, request);
    this.id = this.begun.id;
    if (request.stream) this.flow = new EventFlow(deps.clock);
  }

  /** Goes on to the end. */
  async drive(): Promise<void> {
    const { lifecycle } = this.deps;
    lifecycle.enter();
    try {
      const held = await this.submitted();
      this.recorded.resolve(held.is === "held");
      if (held.is === "held") await this.placed(held.charge);
      else this.over(held.is === "failed" ? held.failure : held);
    } finally {
      lifecycle.leave();
    }
  }

  /** Ends a response after a bug: the hold is released, and the key is spent, since the provider may have been called. */
  async broken(): Promise<void> {
    const failure = bug(this.id);
    if (!this.streaming) this.answer.resolve(failure);
    this.recorded.resolve(true);
    if (this.streaming) this.fail(failure, []);
    await this.unanswered(failure, [], "terminal").last;
    this.over(terminal());
  }

  private async placed(charge: Charge): Promise<void> {
    const free = this.deps.places.take(this.command.accountId);
    if (typeof free === "string") return this.failed({ failure: tooMany(free, "responses"), output: [] });
    try {
      await this.called(charge);
    } finally {
      free();
    }
  }

  /** The charge, and the record of what is about to be called, in one step. */
  private async submitted(): Promise<Exclude<Held, { is: "unsaid" }>> {
    const { deps, provider, begun, command } = this;
    const { store, owner, clock } = deps;
    const request = present(this.request, "a request that is not sent yet");
    // Without a stream no client knows the id before the answer.
    const response = newRecord(command, begun, request, this.flow && JSON.stringify(begun));
    const holding = hold(deps, provider, request, response, (charge) => store.submit({ charge, response, owner }));
    // Beside the store's work.
    provider.prepare(request, command.accountId);
    const held = await holding;
    if (held.is !== "unsaid") return held;
    const failure = billingDown(held);
    this.answer.resolve(failure);
    // What may have been recorded is taken back before the key may be used again.
    await persist(deps, this.id, () => store.withdraw({ response, owner, at: seenSeconds(clock) })).last;
    return { is: "failed", failure };
  }

  private async called(charge: Charge): Promise<void> {
    const { deps, command: caller, provider, flow, begun } = this;
    const reader = flow && {
      emit: (event: Parameters<EventFlow["push"]>[0]) => flow.push(event),
      moved: () => {
        this.begin();
        flow.flush();
      },
    };
    flow?.push({ type: "response.created", response: begun });
    flow?.push({ type: "response.in_progress", response: begun });
    const request = present(this.request, "a request that is not sent yet");
    this.request = undefined;
    const late = deps.clock.after(LIMITS.llmKeepaliveMs, () => this.begin());
    const outcome = await callProvider(deps, { request, provider, caller, reader }).finally(late);
    if ("failure" in outcome) await this.failed(outcome);
    else await this.completed(outcome, charge);
  }

  /** The client's stream begins: with the first piece of the answer, or when it has waited for long. */
  private begin(): void {
    if (this.streaming || !this.flow) return;
    this.streaming = true;
    this.answer.resolve({ flow: this.flow, id: this.id, replayed: false });
  }

  /** Sends the end once price and answer are durable. */
  private async completed(answer: Answer, charge: Charge): Promise<void> {
    const { object, text, first, last } = complete(this.deps, charge, this.begun, answer);
    const outcome = await first;
    if (outcome === "kept") {
      const { flow } = this;
      this.begin();
      flow?.push({ type: answer.incomplete ? "response.incomplete" : "response.completed", response: object });
      flow?.end("done");
      return this.over({ object: text, replayed: false });
    }
    this.fail(unkept(outcome), answer.output);
    const kept = await last;
    this.over(kept === "kept" ? { object: text, replayed: false } : unkept(kept));
  }

  /** The money goes back, and the key is worth what the failure says: a provider that is not there may be asked again. */
  private async failed({ failure, output }: FailedCall): Promise<void> {
    const key = failure.row.final ? "terminal" : "free";
    const { first, last } = this.unanswered(failure, output, key);
    await first;
    this.fail(failure, output);
    await last;
    this.over(failure);
  }

  private unanswered(failure: Failure, output: FailedCall["output"], key: "free" | "terminal") {
    const { deps, id, begun } = this;
    const { accountId } = this.command;
    return end(deps, { id, accountId }, this.streaming ? failedObject(begun, failure, output) : undefined, key);
  }

  /** Tells the client. */
  private fail(failure: Failure, output: FailedCall["output"]): void {
    if (!this.streaming) {
      this.answer.resolve(failure);
      return;
    }
    const { code, detail = "" } = failure;
    this.deps.log.info("stream failed", { request: this.command.requestId, response: this.id, code, detail });
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
  if (outcome === "lost") return terminal();
  const message = "the response may be recorded and charged or not; repeat the request with the same key in a moment";
  return unsaid(message, outcome.reason);
}
