/** The open engine's handle, and the completions that its native threads report. */
import { LIMITS } from "../limits.ts";
import { assert, present } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import { ABI_VERSION, OpenOptions, STATUS } from "./abi.ts";
import { type Calls, Completions, errorText, type Handle, handleOf, lastError } from "./binding.ts";

/** Shared by the engine, its models and their inferences. */
export class Channel {
  private handle: Handle | undefined;
  private readonly waiting = new Map<number, (status: number) => void>();
  /** Called, for a model's ticket, when one of its replicas is out. */
  readonly replicaOut = new Map<number, () => void>();
  private readonly completions = new Completions("f64", (ticket, status) => this.complete(ticket, status));

  constructor(readonly calls: Calls) {}

  /** The open engine. */
  get engine(): Handle {
    return present(this.handle, "an open engine");
  }

  open(decodeThreads: number, runtimePath: string, jpegPath: string): Problem | undefined {
    const options = new DataView(new ArrayBuffer(OpenOptions.size));
    options.setUint32(OpenOptions.abi_version, ABI_VERSION, true);
    options.setUint32(OpenOptions.decode_threads, decodeThreads, true);
    options.setUint32(OpenOptions.chunks_max, LIMITS.chunksMax, true);
    options.setUint32(OpenOptions.frames_max, LIMITS.framesMax, true);
    const [runtime, jpeg] = [Buffer.from(runtimePath), Buffer.from(jpegPath)];
    const settings = new Uint8Array(options.buffer);
    const { address } = this.completions;
    this.handle = handleOf((out) =>
      this.calls.tendon_open(settings, runtime, runtime.length, jpeg, jpeg.length, address, out),
    );
    return this.isOpen ? undefined : new Problem(`the engine cannot be opened: ${lastError(this.calls)}`);
  }

  /** Calls `done` once with the status of the ticket's completion. */
  wait(ticket: number, done: (status: number) => void): void {
    assert(!this.waiting.has(ticket), "a ticket is waited for once");
    this.waiting.set(ticket, done);
  }

  /** The status of a call that can only fail by a bug of ours; throws for a failure. */
  expect(status: number, call: string): number {
    if (status < 0) throw new Error(`assertion failed: ${call}: ${lastError(this.calls)}`);
    return status;
  }

  /** The text of a failure that a completion reported. */
  errorText(ticket: number, model = 0): string {
    return errorText(this.calls, this.engine, model, ticket);
  }

  /** False once the engine is closed: all its memory is free then, so nothing may be given back. */
  get isOpen(): boolean {
    return this.handle !== undefined;
  }

  async close(): Promise<void> {
    const { engine } = this;
    // Nothing reads the engine's memory any more: what was reported before counts as cancelled.
    this.handle = undefined;
    this.expect(this.calls.tendon_close(engine), "close");
    await this.completions.close();
    for (const [ticket] of [...this.waiting]) this.complete(ticket, STATUS.cancelled);
  }

  private complete(ticket: number, status: number): void {
    if (status === STATUS.replicaOut) {
      if (this.isOpen) this.replicaOut.get(ticket)?.();
      return;
    }
    const done = present(this.waiting.get(ticket), "the callback of a ticket");
    this.waiting.delete(ticket);
    done(this.isOpen ? status : STATUS.cancelled);
  }
}
