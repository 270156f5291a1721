/** An inference over its slot in the native library. */
import { assert } from "../std/assert.ts";
import { STATUS } from "./abi.ts";
import type { Channel } from "./channel.ts";
import type { ChunkResult, Inference } from "./engine.ts";
import { Fault, replicaOut } from "./fault.ts";
import { undecodable } from "./frame.ts";
import type { ResultSlots } from "./result.ts";

export class NativeInference implements Inference {
  private readonly outcome = Promise.withResolvers<ChunkResult | Fault>();
  readonly result = this.outcome.promise;
  private readonly over = Promise.withResolvers<void>();
  readonly released = this.over.promise;
  badFrame: number | undefined;
  decodeMs = 0;
  modelMs = 0;
  private native: "running" | "done" = "running";
  private settled = false;
  /** The result is a chunk. */
  private gave = false;
  /** The caller's decision; done once the native side has ended. */
  private verdict: "commit" | "abort" | undefined;

  constructor(
    private readonly channel: Channel,
    private readonly results: ResultSlots,
    private readonly ticket: number,
  ) {
    channel.wait(ticket, (status) => this.ended(status));
  }

  /** `result` settles at once; the native side ends before its next flow step and frees its slot then. */
  cancel(): void {
    if (this.settled) return;
    if (this.channel.isOpen)
      this.channel.expect(this.channel.calls.tendon_cancel(this.channel.engine, this.ticket), "cancel");
    this.finish(cancelled());
  }

  withdraw(): boolean {
    if (this.settled || !this.channel.isOpen) return false;
    const { calls, engine } = this.channel;
    const taken = this.channel.expect(calls.tendon_withdraw(engine, this.ticket), "withdraw") === 1;
    if (taken) this.finish(cancelled());
    return taken;
  }

  commit(): void {
    this.decide("commit");
  }

  abort(): void {
    this.decide("abort");
  }

  private decide(verdict: "commit" | "abort"): void {
    assert(this.settled && this.verdict === undefined, "commit or abort is called once, after the result");
    assert(verdict === "abort" || this.gave, "an inference that gave no chunk is not committed");
    this.verdict = verdict;
    if (this.native === "done") this.release(verdict);
  }

  private ended(status: number): void {
    this.native = "done";
    // The memory of a closed engine is not read.
    if (this.channel.isOpen) {
      this.decodeMs = this.results.decodeMs(this.ticket);
      this.modelMs = this.results.modelMs(this.ticket);
    }
    if (this.settled) {
      if (this.verdict !== undefined) this.release("abort");
      return;
    }
    this.finish(status === STATUS.ok ? this.results.read(this.ticket) : this.failed(status));
  }

  private finish(result: ChunkResult | Fault): void {
    this.settled = true;
    this.gave = !(result instanceof Fault);
    this.outcome.resolve(result);
  }

  private failed(status: number): Fault {
    if (status === STATUS.cancelled) return cancelled();
    if (status === STATUS.lost) return replicaOut();
    const detail = this.channel.errorText(this.ticket);
    if (status === STATUS.outOfMemory) {
      return new Fault("out_of_memory", "the device of the model has no memory left for this run", detail);
    }
    if (status === STATUS.image || status === STATUS.size || status === STATUS.decoder) {
      this.badFrame = this.results.badFrame(this.ticket);
      return undecodable(status, detail);
    }
    const known = status === STATUS.model || status === STATUS.panic;
    assert(known, `an inference ends as done, cancelled, lost or failed, not ${status}`);
    // The native text names tensors and graph nodes: it is for the log, not for a client.
    return new Fault("model_failed", "the model failed on this observation", detail);
  }

  private release(verdict: "commit" | "abort"): void {
    if (this.channel.isOpen) {
      const { calls, engine } = this.channel;
      const decide = verdict === "commit" ? calls.tendon_commit : calls.tendon_abort;
      this.channel.expect(decide(engine, this.ticket), verdict);
      this.channel.expect(calls.tendon_slot_free(engine, this.ticket), "slot_free");
    }
    this.over.resolve();
  }
}

function cancelled(): Fault {
  return new Fault("cancelled", "the run was cancelled");
}
