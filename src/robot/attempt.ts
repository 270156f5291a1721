/**
 * One observation from its command to its durable answer. `observe` checks up to capacity and starts the inference. `answered` waits for
 * it, makes its record durable, then returns the answer. What the steps hold is in holdings.ts.
 */
import type { Charge } from "../charge/charges.ts";
import { engineFault } from "../drill.ts";
import type { ChunkResult, Inference, Model } from "../engine/engine.ts";
import { Fault } from "../engine/fault.ts";
import { LIMITS } from "../limits.ts";
import { assert, present } from "../std/assert.ts";
import { sleep } from "../std/clock.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { StoreDown } from "../store/store.ts";
import {
  type Answer,
  answerOf,
  fromStored,
  notRecorded,
  outcomeUnknown,
  REASONS,
  startMs,
  timingOf,
  toStored,
  uncorrelated,
  usageOf,
} from "./answer.ts";
import { type Caller, type ObserveCommand, observationDigest, type RobotDeps } from "./command.ts";
import { ROBOT } from "./errors.ts";
import { failureOf } from "./faults.ts";
import type { Demand } from "./forecast.ts";
import { firstBad, type PutFrame } from "./frames.ts";
import { Holdings } from "./holdings.ts";
import { Interruptions } from "./interruptions.ts";
import type { Replay } from "./replay.ts";
import type { Ticket } from "./session/ticket.ts";
import { stateFault, stateVector } from "./state.ts";

/** An observation whose answer is on its way, or is there already. */
export interface PendingAnswer {
  readonly generationId: string;
  /** Unix seconds. */
  readonly created: number;
  /** Zero-based chunk index; null when the client named no session. */
  readonly step: number | null;
  /** It is an earlier answer: nothing is computed. */
  readonly replayed: boolean;
  /** `print` makes what the transport sends, beside the commit. Resolves once the answer is durable. To be called once. */
  answered<T>(print: (answer: Answer) => T): Promise<PrintedAnswer<T> | Failure>;
}

export interface PrintedAnswer<T> {
  readonly printed: T;
  /** Time from arrival to the model's start, and from the answer to its durable record; undefined on a replay. */
  readonly times: { readonly startMs: number; readonly commitMs: number } | undefined;
}

/** Every check from the idempotent replay to capacity. The attempt gives the command's frames back. */
export async function observe(
  deps: RobotDeps,
  command: ObserveCommand,
  caller: Caller,
): Promise<PendingAnswer | Failure> {
  const attempt = new Attempt(deps, command, caller);
  return await attempt.guarded(() => attempt.start());
}

class Attempt implements PendingAnswer {
  readonly replayed = false;
  readonly generationId: string;
  readonly created: number;
  private readonly held: Holdings;
  private digest: Uint8Array | undefined;
  private frames: readonly PutFrame[] = [];
  /** See `Instants` of answer.ts. */
  private readonly begunMs: number;
  private putMs = 0;
  private observedMs = 0;
  private early = false;

  constructor(
    private readonly deps: RobotDeps,
    private readonly command: ObserveCommand,
    private readonly caller: Caller,
  ) {
    this.held = new Holdings(command.frames, caller, deps);
    this.generationId = makeId("gen_", deps.clock);
    this.created = Math.floor(deps.clock.unixMs() / 1000);
    this.begunMs = deps.clock.monotonicMs();
  }

  get step(): number | null {
    return this.ticket.named ? this.ticket.step : null;
  }

  /** Releases everything that is held when `work` fails or throws. */
  async guarded<T>(work: () => Promise<T | Failure>): Promise<T | Failure> {
    try {
      const outcome = await work();
      if (outcome instanceof Failure) this.held.undo(outcome);
      return outcome;
    } catch (error) {
      this.held.undo();
      throw error;
    }
  }

  /** Replay, session, state; then slots, decode and money side by side; capacity; inference. */
  async start(): Promise<PendingAnswer | Failure> {
    const { command, held } = this;
    const replay = await this.claim();
    if (replay instanceof Failure) return replay;
    if (replay) {
      held.undo("replayed");
      return replayed(replay);
    }
    const { manifest, model } = command.served;
    if (!model) return new Failure(ROBOT.engine_unavailable, "the model is still loading; retry in a second");
    const ticket = await this.openSession();
    if (ticket instanceof Failure) return ticket;
    held.ticket = ticket;
    held.interruptions = this.interruptible();
    const failure = stateFault(manifest.state.kind, command.state) ?? (await this.admitted());
    if (failure) return failure;
    // Before the decode, so that the statement is sent before the decoders occupy the cores.
    held.charge = this.hold(model);
    // `paid` awaits it, after the decode. Without this, an earlier error would be an unhandled rejection.
    held.charge.catch(() => {});
    const refused = this.put(model) ?? (await this.before()) ?? ticket.admit();
    // The failure of a bad image comes before a lack of money or of a slot. After that the inference reports it.
    if (refused) return (await this.badImage()) ?? refused;
    return this.infer(model) ?? this;
  }

  async answered<T>(print: (answer: Answer) => T): Promise<PrintedAnswer<T> | Failure> {
    const computed = await this.guarded(() => this.computed());
    if (computed instanceof Failure) return computed;
    const { result, answer } = computed;
    const { clock } = this.deps;
    const answerMs = clock.monotonicMs();
    const kept = this.guarded(() => this.keep(result, answer));
    // At the same time as the commit. An error in it is thrown after the commit: an answer that is durable is never undone.
    const printed = Promise.try(() => print(answer));
    printed.catch(() => {});
    // A commit that has begun is finished even when the client disconnects: a repeat with the same id gets the answer.
    this.interruptions.onLeave = () => false;
    const failure = await this.interruptions.race(kept, () => outcomeUnknown(this.command));
    if (failure) return failure;
    const waitedMs = startMs(this.observedMs, result.micros) - this.caller.arrivedMs;
    return { printed: await printed, times: { startMs: waitedMs, commitMs: clock.monotonicMs() - answerMs } };
  }

  /** The replay of an observation that was answered before; undefined: this attempt may infer it. */
  private async claim(): Promise<Replay | undefined | Failure> {
    const { deps, command } = this;
    const { observationId } = command;
    if (observationId === undefined) return undefined;
    const session = { ...this.key(), sessionId: command.sessionId ?? "" };
    const isFirst = deps.sessions.isFirst(session, observationId);
    this.digest = observationDigest(command);
    const claimed = await deps.replays.claim({ ...session, observationId }, this.digest, isFirst);
    if (claimed instanceof Failure || claimed.kind === "replay") return claimed;
    this.held.add(claimed);
    return undefined;
  }

  private async openSession(): Promise<Ticket | Failure> {
    const { command, caller, deps } = this;
    const { manifest, slots } = command.served;
    const { sessionId, observationId } = command;
    const { holder, keyId } = caller;
    const cameras = manifest.cameras.length;
    return await deps.sessions.begin(
      { ...this.key(), sessionId, observationId, holder, keyId },
      { instruction: command.instruction, expectedStep: command.expectedStep, images: command.frames.counts },
      { first: cameras * manifest.frames.first, later: cameras * manifest.frames.later },
      slots,
    );
  }

  private interruptible(): Interruptions {
    const { deps, caller } = this;
    const { deadlineMs } = this.command;
    const retryAfterSeconds = () => deps.forecast.retryAfterSeconds(this.demand);
    return new Interruptions(deps, caller, deadlineMs, retryAfterSeconds);
  }

  /** Waits for the permits of the inference and its frames. Refuses at once what could not be answered in time. */
  private async admitted(): Promise<Failure | undefined> {
    const { interruptions } = this;
    if (interruptions.leftMs <= 0) return interruptions.stopped();
    const inFlight = this.deps.forecast.enter(this.demand, interruptions.leftMs);
    if (inFlight instanceof Failure) return inFlight;
    this.held.inFlight = inFlight;
    const { accountId, model } = this.key();
    const permit = this.deps.admission.take(accountId, model, this.command.frames.permitsMissing);
    if (permit instanceof Failure) return permit;
    this.held.permit = permit;
    return await interruptions.race(permit.granted);
  }

  /** Holds the most that the inference can cost. */
  private async hold(model: Model): Promise<Charge | Failure> {
    const { command, ticket, deps } = this;
    const { manifest } = command.served;
    for (const name of ["billing_unavailable", "metering_unavailable"] as const) {
      if (!this.strikes(name)) continue;
      const message = `${name.replace("_", " is ")}, nothing ran; retry with backoff`;
      return new Failure(EVERY[name], message, { retryAfterSeconds: 1 });
    }
    const promptTokens = model.measure({
      instruction: command.instruction,
      state: stateVector(manifest, command.state),
      ...(ticket.slot === undefined ? {} : { slot: ticket.slot }),
    });
    if (promptTokens instanceof Fault) return failureOf(promptTokens);
    return await deps.charges.hold({
      chargeId: this.generationId,
      accountId: this.caller.accountId,
      item: manifest.id,
      rates: command.served.rates,
      max: { promptTokens, completionTokens: manifest.action.rows },
      deadlineMs: deps.chunkMs,
    });
  }

  private put(model: Model): Failure | undefined {
    const { command, turn, deps, caller } = this;
    // The second look: other requests of the account may have been refused while this one waited.
    const refused = deps.unpaid.refusal(caller.accountId);
    if (refused) return refused;
    this.early = command.frames.permitsMissing === 0;
    this.putMs = deps.clock.monotonicMs();
    const frames = command.frames.put(model, turn);
    if (frames instanceof Failure) return frames;
    this.frames = frames;
    return undefined;
  }

  private async badImage(): Promise<Failure | undefined> {
    return await this.interruptions.race(firstBad(this.frames));
  }

  /** What the inference waits for, apart from its images. */
  private async before(): Promise<Failure | undefined> {
    const bad = this.caller.streams ? await this.badImage() : undefined;
    if (bad) return bad;
    const charge = await this.interruptions.race(present(this.held.charge, "a charge that was asked for"));
    return charge instanceof Failure ? charge : undefined;
  }

  private infer(model: Model): Failure | undefined {
    const { command, ticket, deps } = this;
    const { manifest } = command.served;
    if (this.strikes("engine_unavailable")) {
      return new Failure(ROBOT.engine_unavailable, "the model service is not reachable; retry with backoff");
    }
    const failStep = this.failStep();
    const fault = engineFault((name) => this.strikes(name));
    this.observedMs = deps.clock.monotonicMs();
    const inference = model.observe({
      frames: this.frames.map(({ frame }) => frame),
      instruction: command.instruction,
      state: stateVector(manifest, command.state),
      step: ticket.step,
      seed: command.seed,
      turn: this.turn,
      ...(ticket.slot === undefined ? {} : { slot: ticket.slot }),
      ...(failStep === undefined ? {} : { failStep }),
      ...(fault === undefined ? {} : { fault }),
    });
    if (inference instanceof Fault) return failureOf(inference);
    this.held.inference = inference;
    return undefined;
  }

  /** A disconnect cancels the inference until the model starts; later the chunk is stored for a repeat. A deadline always does. */
  private async computed(): Promise<{ readonly result: ChunkResult; readonly answer: Answer } | Failure> {
    const inference = present(this.held.inference, "an inference that the engine has taken on");
    this.interruptions.onLeave = () => inference.withdraw();
    const computed = await this.interruptions.race(this.resultOf(inference));
    if (computed instanceof Failure) return computed;
    const { result, timing } = computed;
    this.held.inFlight?.computed(startMs(this.observedMs, result.micros));
    const generation = { id: this.generationId, created: this.created };
    const wrong = uncorrelated(this.command, result);
    const ended = wrong ?? this.interruptions.settle();
    return ended ?? { result, answer: answerOf(this.command, this.ticket, result, generation, timing) };
  }

  /** The result, after the delay of a drill if there is one; `timing` is to be called when the answer is made. */
  private async resultOf(inference: Inference) {
    const result = await inference.result;
    if (result instanceof Fault) return failureOf(result, this.frames[inference.badFrame ?? -1]?.param);
    const { clock } = this.deps;
    const resultMs = clock.monotonicMs();
    if (this.strikes("slow_model")) await sleep(clock, LIMITS.slowModelMs);
    const drillMs = clock.monotonicMs() - resultMs;
    const { begunMs, putMs, observedMs, early } = this;
    const { inBody } = this.command.frames;
    const { arrivedMs } = this.caller;
    const facts = { arrivedMs, begunMs, putMs, observedMs, resultMs, inBody, early, drillMs };
    return { result, timing: () => timingOf({ ...facts, answerMs: clock.monotonicMs() }, result.micros) };
  }

  /** Price and record become durable in one step; then, and only then, memory and step move on. */
  private async keep(result: ChunkResult, answer: Answer): Promise<Failure | undefined> {
    const { command, caller, ticket, deps } = this;
    const charge = await this.held.charge;
    assert(charge !== undefined && !(charge instanceof Failure), "an inference is paid for");
    const session = ticket.named ? { ...this.key(), sessionId: ticket.sessionId } : undefined;
    const observation = this.record(answer);
    const kept = await deps.charges.settle(charge, usageOf(result), (settlement) =>
      deps.records.settleChunk({ ...settlement, session, observation }),
    );
    if (kept === "kept") {
      this.held.keep();
      return undefined;
    }
    const lost = kept instanceof StoreDown && kept.outcomeUnknown;
    // The record may be durable or not. The session ends, because its memory may lack a step that was charged; a repeat of the same
    // observation_id finds out.
    if (lost && ticket.named) deps.sessions.end({ ...this.key(), sessionId: ticket.sessionId });
    this.held.undo();
    const reason = kept instanceof StoreDown ? kept.reason : REASONS[kept];
    deps.log.error("chunk not recorded", { request: caller.requestId, generation: this.generationId, reason, lost });
    return kept === "known" || lost ? outcomeUnknown(command) : notRecorded();
  }

  /** What a repeat of the observation is answered from. */
  private record(answer: Answer) {
    const { observationId, sessionId } = this.command;
    if (observationId === undefined) return undefined;
    return {
      ...this.key(),
      sessionId: sessionId ?? "",
      observationId,
      digest: present(this.digest, "the digest of a claimed observation"),
      generationId: this.generationId,
      step: this.step,
      answer: this.strikes("result_lost") ? undefined : toStored(answer),
    };
  }

  private get ticket(): Ticket {
    return present(this.held.ticket, "the session of an attempt");
  }

  private get interruptions(): Interruptions {
    return present(this.held.interruptions, "the deadline of an attempt");
  }

  private key(): { accountId: string; model: string } {
    return { accountId: this.caller.accountId, model: this.command.served.manifest.id };
  }

  private get demand(): Demand {
    const { model } = this.command.served;
    return { ...this.key(), replicas: model ? Math.max(1, model.replicas - model.lost.length) : 1 };
  }

  /** Accounts take turns in the engine; two whose ids have the same checksum share a turn. */
  private get turn(): number {
    return Bun.hash.crc32(this.caller.accountId);
  }

  private failStep(): number | undefined {
    if (this.strikes("model_failure")) return 0;
    return this.strikes("after_start") ? (this.command.served.manifest.flow?.steps ?? 1) - 1 : undefined;
  }

  private strikes(name: Parameters<RobotDeps["drills"]["strikes"]>[0]): boolean {
    const target = { ...this.key(), sessionId: this.command.sessionId, step: this.ticket.step };
    return this.deps.drills.strikes(name, target);
  }
}

function replayed({ generationId, step, answer: stored }: Replay): PendingAnswer {
  const answer = fromStored(stored);
  const { created } = answer.head;
  return {
    generationId,
    created,
    step,
    replayed: true,
    answered: async (print) => ({ printed: print(answer), times: undefined }),
  };
}
