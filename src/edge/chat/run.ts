/**
 * One observation through session and engine to a chunk. Whatever goes wrong, the frames are dropped, the run is
 * cancelled and aborted, and the session's step stays where it was.
 */
import type { ChunkResult, Frame, Run, StationMicros } from "../../engine/engine.ts";
import { Failure } from "../../error.ts";
import type { Ticket } from "../../session/table.ts";
import type { Clock } from "../../std/clock.ts";
import { rowsText } from "../../std/float32.ts";
import type { Service } from "../service.ts";
import type { ObserveCommand } from "./draft.ts";
import { stateFault, stateVector } from "./state.ts";

/** A chunk that is on its way to the client: its step is taken. */
export interface Chunk {
  readonly sessionId: string;
  /** Whether the client named the session. */
  readonly named: boolean;
  readonly step: number;
  /** The rows that were asked for, as JSON text. */
  readonly rowsText: string;
  readonly nextFramesPerCamera: number;
  readonly cacheReset: boolean;
  /** `encode` includes the printing of the rows. */
  readonly micros: StationMicros;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Rows that the model computed. */
  readonly rowsComputed: number;
}

/**
 * Session stage, decode, run. `signal` tells that the client has left: that ends the request until its run is handed to
 * the engine. From then on, also while the run only waits in the engine's queue, the chunk is computed and committed.
 */
export async function runChunk(
  service: Service,
  accountId: string,
  command: ObserveCommand,
  signal: AbortSignal,
): Promise<Chunk | Failure> {
  const { manifest, model } = command.served;
  if (!model) return new Failure("engine_unavailable", "the model is still loading; retry in a second");
  const cameras = manifest.cameras.length;
  const ticket = service.sessions.begin(
    { accountId, model: manifest.id, sessionId: command.sessionId },
    { instruction: command.instruction, expectedStep: command.expectedStep, images: command.images.length },
    { first: cameras * manifest.frames.first, later: cameras * manifest.frames.later },
  );
  if (ticket instanceof Failure) return ticket;
  const attempt = new Attempt(ticket);
  const late = deadline(service.clock, service.chunkMs);
  const gone = departure(signal);
  try {
    const unready =
      stateFault(manifest.state.kind, command.state) ??
      attempt.putFrames(command, ticket.step) ??
      (await Promise.race([attempt.decoded(command), late.passed, gone.passed])) ??
      ticket.admit();
    if (unready) return unready;
    const run = attempt.observe(command, stateVector(manifest, command.state));
    if (run instanceof Failure) return run;
    const result = await Promise.race([run.result, late.passed]);
    if (result instanceof Failure) return result;
    const chunk = encode(service.clock, command, ticket, result);
    attempt.commit();
    return chunk;
  } finally {
    late.disarm();
    gone.disarm();
    attempt.undoUnlessCommitted();
  }
}

/** What one request holds of session and engine. */
class Attempt {
  private frames: Frame[] = [];
  private run: Run | undefined;
  private committed = false;

  constructor(private readonly ticket: Ticket) {}

  /** Hands every frame to the decoders; camera-major, so that a camera's frames stand together. */
  putFrames(command: ObserveCommand, step: number): Failure | undefined {
    const { manifest, model } = command.served;
    const perCamera = step === 0 ? manifest.frames.first : manifest.frames.later;
    for (const [index, { jpeg, param }] of command.images.entries()) {
      const frame = model?.framePut(Math.floor(index / perCamera), jpeg);
      if (frame instanceof Failure) return at(frame, param);
      if (frame) this.frames.push(frame);
    }
    return undefined;
  }

  /** Waits for all decoders; the first bad frame in wire order. */
  async decoded(command: ObserveCommand): Promise<Failure | undefined> {
    const failures = await Promise.all(this.frames.map((frame) => frame.decoded));
    const index = failures.findIndex((failure) => failure !== undefined);
    const failure = failures[index];
    return failure ? at(failure, command.images[index]?.param) : undefined;
  }

  observe(command: ObserveCommand, state: Float32Array): Run | Failure {
    const { instruction, seed } = command;
    const run = command.served.model?.observe({
      frames: this.frames,
      instruction,
      state,
      step: this.ticket.step,
      seed,
    });
    if (!run) return new Failure("engine_unavailable", "the model is not loaded; retry in a second");
    if (!(run instanceof Failure)) this.run = run;
    return run;
  }

  commit(): void {
    this.committed = true;
    this.ticket.commit();
    this.run?.commit();
  }

  /** Stops the work itself, not only the reply; the session is free again once the engine has let go of the run. */
  undoUnlessCommitted(): void {
    if (this.committed) return;
    const { run, ticket } = this;
    if (!run) {
      for (const frame of this.frames) frame.drop();
      ticket.fail();
      return;
    }
    run.cancel();
    void run.result.then(() => {
      run.abort();
      ticket.fail();
    });
  }
}

function at(failure: Failure, param: string | undefined): Failure {
  return failure.code === "invalid_image" && param !== undefined
    ? new Failure(failure.code, failure.message, { param })
    : failure;
}

/** Prints the rows while the engine's view is valid; the time that takes belongs to `encode`. */
function encode(clock: Clock, command: ObserveCommand, ticket: Ticket, result: ChunkResult): Chunk {
  const startMs = clock.monotonicMs();
  const text = rowsText(result.actions, command.rows, result.columns);
  const printMicros = (clock.monotonicMs() - startMs) * 1000;
  const { frames } = command.served.manifest;
  return {
    sessionId: ticket.sessionId,
    named: ticket.named,
    step: ticket.step,
    rowsText: text,
    // A request without session_id is always the first of its own session.
    nextFramesPerCamera: ticket.named ? frames.later : frames.first,
    cacheReset: result.cacheReset,
    micros: { ...result.micros, encode: result.micros.encode + printMicros },
    promptTokens: result.promptTokens,
    cachedTokens: result.cachedTokens,
    rowsComputed: result.rows,
  };
}

interface Interruption {
  readonly passed: Promise<Failure>;
  disarm(): void;
}

function deadline(clock: Clock, ms: number): Interruption {
  const { promise, resolve } = Promise.withResolvers<Failure>();
  const message = `the chunk was not ready within ${ms / 1000} s and was stopped; retry with backoff`;
  const disarm = clock.after(ms, () => resolve(new Failure("engine_unavailable", message, { retryAfterSeconds: 1 })));
  return { passed: promise, disarm };
}

function departure(signal: AbortSignal): Interruption {
  const { promise, resolve } = Promise.withResolvers<Failure>();
  const leave = () => resolve(new Failure("engine_unavailable", "the client left before the model started"));
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave);
  return { passed: promise, disarm: () => signal.removeEventListener("abort", leave) };
}
