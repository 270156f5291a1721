/**
 * One observation through exactly-once, session, money, engine and store to a chunk.
 *
 * `beginChunk` makes every check up to capacity, with the money held beside the decode, and hands the run to the engine; `Running.finish` waits for it, keeps what
 * must be durable and only then lets the answer out. Whatever goes wrong, frames are dropped, the run is stopped and
 * aborted, its money given back, the session's step and memory stay where they were, and its observation_id is free again.
 */

import type { Charge } from "../charge/charges.ts";
import type { ChunkResult, Model, Run, StationMicros } from "../engine/engine.ts";
import { Failure } from "../error/core.ts";
import { EVERY } from "../error/every-route.ts";
import { ROBOT } from "../error/robot.ts";
import { LIMITS } from "../limits.ts";
import { assert, present } from "../std/assert.ts";
import type { Clock } from "../std/clock.ts";
import type { Recent } from "../std/metrics.ts";
import type { Usage } from "../store/charges/records.ts";
import type { ChunkRecord } from "../store/robot/records.ts";
import { StoreDown } from "../store/store.ts";
import type { Permit } from "./admission.ts";
import type { ObserveCommand } from "./command.ts";
import type { RobotDeps } from "./deps.ts";
import { firstBad, type PutFrame } from "./frames.ts";
import { Interruptions } from "./interruption.ts";
import type { Claim, Replay } from "./replay.ts";
import type { Holder, Ticket } from "./session/table.ts";
import { stateFault, stateVector } from "./state.ts";

/** A chunk as it is answered, with its rows in the form that the transport asked for. */
export interface Chunk<Rows> {
  readonly sessionId: string;
  readonly step: number;
  /** The rows that were asked for. */
  readonly rows: Rows;
  readonly nextFramesPerCamera: number;
  readonly cacheReset: boolean;
  /** `encode` includes what the form took. */
  readonly micros: StationMicros;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Rows that the model computed. */
  readonly rowsComputed: number;
}

/** What a transport makes of a chunk. */
export interface Form<Rows> {
  /** `actions`: row-major float32, a view that is valid during the call; its first `rows` rows of `columns` values were asked for. */
  readonly rows: (actions: Float32Array, rows: number, columns: number) => Rows;
  /** The answer's text, which is kept for a repeat of the observation. */
  readonly text: (chunk: Chunk<Rows>) => string;
}

/** A run that the engine has taken on. */
export interface Running {
  readonly kind: "running";
  /** Zero-based chunk index; undefined when the client named no session. */
  readonly step: number | undefined;
  /** The answer in its form, once everything about it is durable. To be called once. */
  finish<Rows>(form: Form<Rows>): Promise<Printed | Failure>;
}

export interface Printed {
  readonly text: string;
  readonly micros: StationMicros;
}

interface Asked {
  readonly accountId: string;
  readonly generationId: string;
  /** Tells that the client has left: that takes the run back as long as the model has not started on it. */
  readonly signal: AbortSignal;
  /** The connection that holds the session. */
  readonly holder?: Holder;
  /** When the observation arrived, monotonic ms, and where it is noted how long its model took to start. */
  readonly arrivedMs: number;
  readonly starts: Recent;
}

/** Every check from the idempotent replay to capacity. The command's frames are given back when nothing needs them any more. */
export async function beginChunk(
  service: RobotDeps,
  command: ObserveCommand,
  asked: Asked,
): Promise<Running | Replay | Failure> {
  const marks = { begun: false };
  try {
    return await beginObserved(service, command, asked, marks);
  } finally {
    // From its begin on an attempt looks after them.
    if (!marks.begun) void command.frames.close();
  }
}

async function beginObserved(
  service: RobotDeps,
  command: ObserveCommand,
  asked: Asked,
  marks: { begun: boolean },
): Promise<Running | Replay | Failure> {
  const { observation, served, sessionId } = command;
  let claim: Claim | undefined;
  const session = { accountId: asked.accountId, model: served.manifest.id, sessionId: sessionId ?? "" };
  if (observation) {
    const isFirst = service.sessions.isFirst(session, observation.id);
    const id = { ...session, observationId: observation.id };
    const claimed = await service.observations.claim(id, observation.digest, isFirst);
    if (claimed instanceof Failure || claimed.kind === "replay") return claimed;
    claim = claimed;
  }
  try {
    const begun = await beginClaimed(service, command, asked, claim, marks);
    if (begun instanceof Failure) claim?.release();
    return begun;
  } catch (error) {
    claim?.release();
    throw error;
  }
}

async function beginClaimed(
  service: RobotDeps,
  command: ObserveCommand,
  asked: Asked,
  claim: Claim | undefined,
  marks: { begun: boolean },
): Promise<Running | Failure> {
  const { manifest, model, slots } = command.served;
  if (!model) return new Failure(ROBOT.engine_unavailable, "the model is still loading; retry in a second");
  const cameras = manifest.cameras.length;
  const ticket = await service.sessions.begin(
    { accountId: asked.accountId, model: manifest.id, sessionId: command.sessionId, holder: asked.holder },
    { instruction: command.instruction, expectedStep: command.expectedStep, images: command.frames.counts },
    { first: cameras * manifest.frames.first, later: cameras * manifest.frames.later },
    slots,
  );
  if (ticket instanceof Failure) return ticket;
  marks.begun = true;
  const attempt = new Attempt(service, command, asked, ticket, model, claim);
  const failure = await attempt.guarded(() => attempt.begin());
  if (failure === undefined) return attempt;
  attempt.undo();
  return failure;
}

/** What one request holds of session, engine and store. */
class Attempt implements Running {
  readonly kind = "running";
  private frames: readonly PutFrame[] = [];
  private run: Run | undefined;
  private observedMs = 0;
  private readonly interruptions: Interruptions;
  private permit: Permit | undefined;
  /** The money for the run, once it was asked for. */
  private money: Promise<Charge | Failure> | undefined;
  /** Committed or taken back. */
  private ended = false;

  constructor(
    private readonly service: RobotDeps,
    private readonly command: ObserveCommand,
    private readonly asked: Asked,
    private readonly ticket: Ticket,
    private readonly model: Model,
    private readonly claim: Claim | undefined,
  ) {
    this.interruptions = new Interruptions(service.clock, service.chunkMs, asked.signal, service.lifecycle.over);
  }

  get step(): number | undefined {
    return this.ticket.named ? this.ticket.step : undefined;
  }

  /** Admission, decode and payment side by side, capacity; then the run waits or runs. */
  async begin(): Promise<Failure | undefined> {
    const { command } = this;
    const failure = stateFault(command.served.manifest.state.kind, command.state) ?? (await this.admitted());
    if (failure) return failure;
    // First, so that it is on its way before the decoders take the cores.
    this.money = this.hold();
    // A fault in it is this request's, once the decoders are done; that nobody asks before must not end the process.
    this.money.catch(() => {});
    return (
      this.putFrames() ??
      (await this.interruptions.race(firstBad(this.frames))) ??
      (await this.paid()) ??
      this.ticket.admit() ??
      this.observe()
    );
  }

  finish<Rows>(form: Form<Rows>): Promise<Printed | Failure> {
    return this.guarded(() => this.answer(form));
  }

  /** A fault of our own must not keep anything either. */
  async guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.undo();
      throw error;
    }
  }

  /** Takes everything back, unless it is committed. The session is free once the engine has let go of the run. */
  undo(): void {
    if (this.ended) return;
    this.ended = true;
    this.interruptions.disarm();
    const { run } = this;
    this.command.frames.drop();
    const { charges } = this.service;
    if (this.money !== undefined) {
      this.alone(this.money.then((charge) => void (charge instanceof Failure || charges.release(charge))));
    }
    const over = () => this.over(() => this.ticket.fail());
    if (!run) {
      over();
      return;
    }
    run.cancel();
    this.alone(run.result.then(() => run.abort()));
    this.alone(run.released.then(over));
  }

  private async answer<Rows>(form: Form<Rows>): Promise<Printed | Failure> {
    const run = present(this.run, "a run that the engine has taken on");
    // A client that leaves takes the run back if it can; otherwise the chunk is finished, and kept for a repeat.
    this.interruptions.onLeave = () => run.withdraw();
    const given = await this.interruptions.race(this.result(run));
    const result = given instanceof Failure ? given : (this.uncorrelated(given) ?? given);
    if (result instanceof Failure) {
      this.undo();
      return result;
    }
    this.asked.starts.add(this.observedMs - this.asked.arrivedMs + result.micros.queue / 1000);
    const chunk = encode(this.service.clock, this.command, this.ticket, result, form);
    const printed = { text: form.text(chunk), micros: chunk.micros };
    const kept = this.keep(run, result, printed.text);
    // What is being made durable is not taken back: a client that cannot wait asks again with the same id.
    this.interruptions.onLeave = () => false;
    const failure = await this.interruptions.race(kept, () => this.outcomeUnknown());
    return failure ?? printed;
  }

  /** Waits until there are slots for the run and its frames. */
  private async admitted(): Promise<Failure | undefined> {
    const { command, asked, service } = this;
    const permit = service.admission.take(asked.accountId, command.served.manifest.id, command.frames.slotsMissing);
    if (permit instanceof Failure) return permit;
    this.permit = permit;
    return await this.interruptions.race(permit.granted);
  }

  private putFrames(): Failure | undefined {
    const { command, ticket, model } = this;
    const { first, later } = command.served.manifest.frames;
    const frames = command.frames.put(model, ticket.step === 0 ? first : later, this.turn);
    if (frames instanceof Failure) return frames;
    this.frames = frames;
    return undefined;
  }

  /** The most that the run can cost. */
  private async hold(): Promise<Charge | Failure> {
    const { command, ticket, asked, model, service } = this;
    const { manifest } = command.served;
    for (const name of ["billing_unavailable", "metering_unavailable"] as const) {
      if (!this.strikes(name)) continue;
      return new Failure(EVERY[name], `${name.replace("_", " is ")}, nothing ran; retry with backoff`, {
        retryAfterSeconds: 1,
      });
    }
    const promptTokens = model.measure({
      instruction: command.instruction,
      state: stateVector(manifest, command.state),
      ...(ticket.slot === undefined ? {} : { slot: ticket.slot }),
    });
    if (promptTokens instanceof Failure) return promptTokens;
    return await service.charges.hold({
      chargeId: asked.generationId,
      accountId: asked.accountId,
      item: manifest.id,
      rates: command.served.rates,
      max: { promptTokens, completionTokens: manifest.action.rows },
      deadlineMs: service.chunkMs,
    });
  }

  private async paid(): Promise<Failure | undefined> {
    const hold = await this.interruptions.race(present(this.money, "a hold that was asked for"));
    return hold instanceof Failure ? hold : undefined;
  }

  private observe(): Failure | undefined {
    const { command, ticket } = this;
    const { manifest } = command.served;
    if (this.strikes("engine_unavailable")) {
      return new Failure(ROBOT.engine_unavailable, "the model service is not reachable; retry with backoff");
    }
    const failStep = this.failStep();
    const run = this.model.observe({
      frames: this.frames.map(({ frame }) => frame),
      instruction: command.instruction,
      state: stateVector(manifest, command.state),
      step: ticket.step,
      seed: command.seed,
      turn: this.turn,
      ...(ticket.slot === undefined ? {} : { slot: ticket.slot }),
      ...(failStep === undefined ? {} : { failStep }),
    });
    if (run instanceof Failure) return run;
    this.run = run;
    this.observedMs = this.service.clock.monotonicMs();
    return undefined;
  }

  private failStep(): number | undefined {
    if (this.strikes("model_failure")) return 0;
    return this.strikes("after_start") ? this.command.served.manifest.flow.steps - 1 : undefined;
  }

  /** The result is not that of an observation of this model: nobody may move by it. */
  private uncorrelated({ rows, columns }: ChunkResult): Failure | undefined {
    const { action } = this.command.served.manifest;
    if (rows === action.rows && columns === action.columns.length) return undefined;
    const [row, next] = this.asked.holder
      ? ([ROBOT.engine_protocol_error, "connect again and repeat the observation"] as const)
      : ([ROBOT.model_failure, "repeat the observation"] as const);
    return new Failure(row, `the engine's answer is not one to this observation; nothing was charged, ${next}`, {
      detail: `a result of ${rows} x ${columns} instead of ${action.rows} x ${action.columns.length}`,
    });
  }

  private async result(run: Run): Promise<ChunkResult | Failure> {
    const result = await run.result;
    if (!(result instanceof Failure) && this.strikes("slow_model")) await this.interruptions.sleep(LIMITS.slowModelMs);
    return result;
  }

  /** What the chunk leaves behind besides its price: its session's activity, its observation's answer. */
  private left(text: string): ChunkRecord {
    const { ticket, asked, command } = this;
    const session = ticket.named ? { ...this.key(), sessionId: ticket.sessionId } : undefined;
    const observation = command.observation && {
      ...this.key(),
      sessionId: command.sessionId ?? "",
      observationId: command.observation.id,
      digest: command.observation.digest,
      generationId: asked.generationId,
      step: ticket.named ? ticket.step : null,
      answer: this.strikes("result_lost") ? undefined : { head: text, rows: new Uint8Array(0) },
    };
    return { session, observation };
  }

  /** Price and record become durable in one step; then, and only then, memory and step move on. */
  private async keep(run: Run, result: ChunkResult, text: string): Promise<Failure | undefined> {
    const { asked, service } = this;
    const charge = present(await this.money, "a hold that was asked for");
    assert(!(charge instanceof Failure), "what runs is paid for");
    const kept = await service.charges.settle(charge, usageOf(result), (settlement) =>
      service.store.robot.settleChunk({ ...settlement, ...this.left(text) }),
    );
    if (kept === "kept") {
      this.commit(run);
      return undefined;
    }
    const lost = kept instanceof StoreDown && kept.outcomeUnknown;
    if (lost) this.lose();
    else this.undo();
    const reason = kept instanceof StoreDown ? kept.reason : REASONS[kept];
    service.log.error("chunk not recorded", { generation: asked.generationId, reason, lost });
    if (kept === "known" || lost) return this.outcomeUnknown();
    return new Failure(
      EVERY.metering_unavailable,
      "the answer could not be recorded and was taken back, as if nothing ran; retry with backoff",
      { retryAfterSeconds: 1 },
    );
  }

  /**
   * Nobody knows whether the record is durable. The session ends: its memory may lack a step that was charged. A repeat of the
   * same observation_id finds out.
   */
  private lose(): void {
    const { ticket, service } = this;
    if (ticket.named) service.sessions.end({ ...this.key(), sessionId: ticket.sessionId });
    this.undo();
  }

  /** From here on nothing is taken back, whatever goes wrong. */
  private commit(run: Run): void {
    this.ended = true;
    this.interruptions.disarm();
    this.over(() => {
      run.commit();
      this.ticket.commit();
    });
  }

  /** The deadline has passed, or the service ends, while the record is being made durable. */
  private outcomeUnknown(): Failure {
    const { observation } = this.command;
    if (observation) {
      return new Failure(
        ROBOT.observation_lost,
        "the answer is there but nobody knows yet whether its record is durable; repeat the same observation_id",
        { param: "observation_id", retryAfterSeconds: 1 },
      );
    }
    return new Failure(
      EVERY.metering_unavailable,
      "nobody knows yet whether the answer's record is durable; the step may have been taken: start a new session, or ask without expected_step",
      { retryAfterSeconds: 1 },
    );
  }

  /** Everything is given back: frames, run, session, claim; what fails to be settled holds up nothing else. */
  private over(settle: () => void): void {
    try {
      settle();
    } finally {
      this.alone(this.command.frames.close().then(() => this.permit?.release()));
      this.claim?.release();
    }
  }

  /** Nobody waits for this work: a fault in it is the log's. */
  private alone(work: Promise<unknown>): void {
    void work.catch((error) => this.service.log.error("request fault", { stack: String(error) }));
  }

  private key(): { accountId: string; model: string } {
    return { accountId: this.asked.accountId, model: this.command.served.manifest.id };
  }

  private strikes(name: Parameters<RobotDeps["drills"]["strikes"]>[0]): boolean {
    const { command, ticket } = this;
    return this.service.drills.strikes(name, { ...this.key(), sessionId: command.sessionId, step: ticket.step });
  }

  /** Accounts take turns; two that share a number share a turn. */
  private get turn(): number {
    return Bun.hash.crc32(this.asked.accountId);
  }
}

const REASONS = {
  known: "another service has answered this observation_id",
  not_held: "the money that the run held had been given back",
} as const;

function usageOf({ promptTokens, cachedTokens, rows }: ChunkResult): Usage {
  return { promptTokens, cachedTokens, completionTokens: rows };
}

/** Makes the rows while the engine's view is valid; the time that takes belongs to `encode`. */
function encode<Rows>(
  clock: Clock,
  command: ObserveCommand,
  ticket: Ticket,
  result: ChunkResult,
  form: Form<Rows>,
): Chunk<Rows> {
  const startMs = clock.monotonicMs();
  const rows = form.rows(result.actions, command.rows, result.columns);
  const formMicros = (clock.monotonicMs() - startMs) * 1000;
  const { frames } = command.served.manifest;
  return {
    sessionId: ticket.sessionId,
    step: ticket.step,
    rows,
    // A request without session_id is always the first of its own session.
    nextFramesPerCamera: ticket.named ? frames.later : frames.first,
    cacheReset: result.cacheReset,
    micros: { ...result.micros, encode: result.micros.encode + formMicros },
    promptTokens: result.promptTokens,
    cachedTokens: result.cachedTokens,
    rowsComputed: result.rows,
  };
}
