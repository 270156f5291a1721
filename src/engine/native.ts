/**
 * The engine over the native library: tickets become objects, completions become promises.
 *
 * Calls return within microseconds; work happens on native threads, which report through one thread-safe callback
 * that carries a ticket and a status only. Everything here runs on the event loop's thread.
 */
import { JSCallback, type Pointer, ptr } from "bun:ffi";
import { Failure } from "../error/core.ts";
import { Problem } from "../error/problem.ts";
import { ROBOT } from "../error/robot.ts";
import { LIMITS } from "../limits.ts";
import { assert, present } from "../std/assert.ts";
import { ABI_VERSION, OpenOptions, STATUS, Stats } from "./abi.ts";
import { bindLibrary, type Calls, errorText, lastError, staticText } from "./binding.ts";
import type { Engine, EngineStats, LoadOptions, Model } from "./engine.ts";
import { locateLibraries, PREBUILT } from "./library.ts";
import { NativeModel } from "./model.ts";
import { ResultSlots } from "./result.ts";

/** Opens the native library and starts its decode threads. */
export async function openEngine(options: { decodeThreads: number }): Promise<Engine | Problem> {
  const unfit = await processorProblem();
  if (unfit !== undefined) return unfit;
  const installed = await locateLibraries();
  if (installed instanceof Problem) return installed;
  const calls = bindLibrary(installed.library);
  if (calls instanceof Problem) return calls;
  const channel = new Channel(calls);
  const opened = channel.open(options.decodeThreads, installed.runtime, installed.jpeg);
  return opened ?? new NativeEngine(calls, channel);
}

/** The library is built for x86-64 with AVX2; on another processor its first instruction of that kind ends the process. */
async function processorProblem(): Promise<Problem | undefined> {
  const text = await Bun.file("/proc/cpuinfo").text();
  const flags = new Set(/^flags\s*: (.*)$/m.exec(text)?.[1]?.split(" "));
  const missing = ["avx2", "bmi2", "fma"].filter((flag) => !flags.has(flag));
  if (missing.length === 0) return undefined;
  return new Problem(`this processor lacks ${missing.join(", ")}; tendon needs x86-64 with AVX2, see: tendon doctor`);
}

/** What models and runs need of the engine: its handle, and a way to wait for a ticket. */
export class Channel {
  private handle: Pointer | undefined;
  private readonly waiting = new Map<number, (status: number) => void>();
  private readonly callback: JSCallback;

  constructor(readonly calls: Calls) {
    this.callback = new JSCallback((ticket: number, status: number) => this.complete(ticket, status), {
      args: ["u32", "i32"],
      returns: "void",
      threadsafe: true,
    });
  }

  /** The open engine. */
  get engine(): Pointer {
    return present(this.handle, "an open engine");
  }

  open(decodeThreads: number, runtimePath: string, jpegPath: string): Problem | undefined {
    const options = new DataView(new ArrayBuffer(OpenOptions.size));
    options.setUint32(OpenOptions.abi_version, ABI_VERSION, true);
    options.setUint32(OpenOptions.decode_threads, decodeThreads, true);
    options.setUint32(OpenOptions.chunks_max, LIMITS.chunksMax, true);
    options.setUint32(OpenOptions.frames_max, LIMITS.framesMax, true);
    const [runtime, jpeg] = [Buffer.from(runtimePath), Buffer.from(jpegPath)];
    const out = new BigUint64Array(1);
    const status = this.calls.tendon_open(
      new Uint8Array(options.buffer),
      runtime,
      runtime.length,
      jpeg,
      jpeg.length,
      present(this.callback.ptr, "the callback's address"),
      ptr(out),
    );
    if (status !== STATUS.ok) return new Problem(`the engine cannot be opened: ${lastError(this.calls)}`);
    this.handle = Number(out[0]) as Pointer;
    return undefined;
  }

  /** Calls `done` once with the status of the ticket's completion. */
  wait(ticket: number, done: (status: number) => void): void {
    assert(!this.waiting.has(ticket), "a ticket is waited for once");
    this.waiting.set(ticket, done);
  }

  /** A call that our own code must not get wrong. */
  expect(status: number, call: string): void {
    if (status < 0) throw new Error(`assertion failed: ${call}: ${lastError(this.calls)}`);
  }

  /** The text of a failure that a completion reported. */
  errorText(ticket: number, model = 0): string {
    return errorText(this.calls, this.engine, model, ticket);
  }

  /** False once the engine is closed: everything that was held is free then, and nothing is to be given back. */
  get isOpen(): boolean {
    return this.handle !== undefined;
  }

  async close(): Promise<void> {
    this.expect(this.calls.tendon_close(this.engine), "close");
    this.handle = undefined;
    // Completions of the last moments are queued behind this turn of the event loop; no thread is left to add another.
    await new Promise((done) => setImmediate(done));
    for (const [ticket] of [...this.waiting]) this.complete(ticket, STATUS.cancelled);
    this.callback.close();
  }

  private complete(ticket: number, status: number): void {
    assert(status !== STATUS.panic, "the native engine panicked");
    const done = present(this.waiting.get(ticket), "somebody who waits for the ticket");
    this.waiting.delete(ticket);
    done(status);
  }
}

class NativeEngine implements Engine {
  readonly version: string;
  readonly runtimeVersion = PREBUILT.runtime.version;
  readonly jpegVersion = PREBUILT.jpeg.version;
  private readonly results: ResultSlots;
  private readonly counters = new DataView(new ArrayBuffer(Stats.size));
  private readonly models = new Set<NativeModel>();
  /** Loads under way: the native side cannot stop one, and closing waits for it without blocking the event loop. */
  private readonly loading = new Set<Promise<unknown>>();
  private closing = false;

  constructor(
    private readonly calls: Calls,
    private readonly channel: Channel,
  ) {
    this.version = staticText(calls.tendon_version());
    this.results = new ResultSlots(calls, channel.engine);
  }

  async load(options: LoadOptions): Promise<Model | Failure> {
    if (this.closing) return cannotLoad(options.bundle.manifest.id, "the engine is closing");
    const load = this.loadNow(options);
    this.loading.add(load);
    try {
      return await load;
    } finally {
      this.loading.delete(load);
    }
  }

  private async loadNow({ bundle, device, replicas, threads, slots }: LoadOptions): Promise<Model | Failure> {
    const files = Object.fromEntries(bundle.paths);
    const plan = { manifest: bundle.manifest, files, device, replicas, threads, slots: slots ?? null };
    const text = Buffer.from(JSON.stringify(plan));
    const ticket = this.calls.tendon_load(this.channel.engine, text, text.length);
    if (ticket < 0) return cannotLoad(bundle.manifest.id, lastError(this.calls));
    const status = await new Promise<number>((done) => this.channel.wait(ticket, done));
    if (status !== STATUS.ok) {
      const failure = cannotLoad(bundle.manifest.id, this.channel.errorText(ticket));
      // A refused model still holds its place until it is given back.
      const gone = new Promise<number>((done) => this.channel.wait(ticket, done));
      this.channel.expect(this.calls.tendon_unload(this.channel.engine, ticket), "unload");
      await gone;
      return failure;
    }
    const model = new NativeModel(this.calls, this.channel, this.results, ticket, bundle.manifest, (gone) =>
      this.models.delete(gone),
    );
    this.models.add(model);
    return model;
  }

  stats(): EngineStats {
    this.channel.expect(this.calls.tendon_stats(this.channel.engine, new Uint8Array(this.counters.buffer)), "stats");
    const wide = (offset: number) => Number(this.counters.getBigUint64(offset, true));
    const runtimeAllocations = this.counters.getBigUint64(Stats.runtime_allocations_last, true);
    return {
      allocations: wide(Stats.allocations),
      runtimeAllocationsLast: runtimeAllocations === 2n ** 64n - 1n ? -1 : Number(runtimeAllocations),
      framesFree: this.counters.getUint32(Stats.frames_free, true),
      chunksFree: this.counters.getUint32(Stats.chunks_free, true),
      framesDecoded: wide(Stats.frames_decoded),
      framesRefused: wide(Stats.frames_refused),
      chunksRun: wide(Stats.chunks_run),
      chunksFailed: wide(Stats.chunks_failed),
      chunksCancelled: wide(Stats.chunks_cancelled),
      valuesClamped: wide(Stats.values_clamped),
      slotsHeld: this.counters.getUint32(Stats.slots_held, true),
      memoryBytesHeld: wide(Stats.memory_bytes_held),
      lockedBytes: wide(Stats.locked_bytes),
      tensorBytes: wide(Stats.tensor_bytes),
    };
  }

  async close(): Promise<void> {
    // From here on nothing new is loaded: the native side would have to wait for it, and the event loop with it.
    this.closing = true;
    await Promise.all(this.loading);
    await Promise.all([...this.models].map((model) => model.unload()));
    await this.channel.close();
  }
}

function cannotLoad(id: string, reason: string): Failure {
  return new Failure(ROBOT.engine_unavailable, `${id} cannot be loaded: ${reason}`);
}
