/**
 * The engine over the native library. Its tickets become objects here, its completions promises.
 *
 * Calls return within microseconds. Work happens on native threads, which report through one thread-safe callback with a
 * ticket and a status (channel.ts). Everything in this folder runs on the event loop's thread.
 */
import { join } from "node:path";
import { folders } from "../config/environment.ts";
import { gpuOptions } from "../config/gpu.ts";
import { LIMITS } from "../limits.ts";
import { Problem } from "../std/problem.ts";
import { STATUS, Stats } from "./abi.ts";
import { jsonOf, lastError, staticText } from "./binding.ts";
import { Channel } from "./channel.ts";
import {
  type DeviceFigures,
  type Engine,
  type EngineStats,
  inferenceMsMaxOf,
  type LoadOptions,
  type Model,
} from "./engine.ts";
import { locateLibraries, openLibrary, PREBUILT } from "./library.ts";
import { NativeModel } from "./model.ts";
import { ResultSlots } from "./result.ts";

/** Opens the native library and starts its decode threads. */
export async function openEngine(options: { decodeThreads: number }): Promise<Engine | Problem> {
  const unfit = await processorProblem();
  if (unfit !== undefined) return unfit;
  const installed = await locateLibraries();
  if (installed instanceof Problem) return installed;
  const calls = await openLibrary();
  if (calls instanceof Problem) return calls;
  const channel = new Channel(calls);
  const opened = channel.open(options.decodeThreads, installed.runtime, installed.jpeg);
  return opened ?? new NativeEngine(channel, installed.kernels);
}

/** The library is built for x86-64 with AVX2; on a processor without it the process would be killed (SIGILL). */
async function processorProblem(): Promise<Problem | undefined> {
  const text = await Bun.file("/proc/cpuinfo").text();
  const flags = new Set(/^flags\s*: (.*)$/m.exec(text)?.[1]?.split(" "));
  const missing = ["avx2", "bmi2", "fma"].filter((flag) => !flags.has(flag));
  if (missing.length === 0) return undefined;
  return new Problem(`this processor lacks ${missing.join(", ")}; tendon needs x86-64 with AVX2, see: tendon doctor`);
}

class NativeEngine implements Engine {
  readonly version: string;
  readonly runtimeVersion = PREBUILT.runtime.version;
  readonly jpegVersion = PREBUILT.jpeg.version;
  private readonly results: ResultSlots;
  private readonly models = new Set<Model>();
  /** Loads in progress, and their tickets. `close` gives them up, and waits for that without blocking the event loop. */
  private readonly loading = new Set<Promise<unknown>>();
  private readonly tickets = new Set<number>();
  private closing = false;

  constructor(
    private readonly channel: Channel,
    /** Device code of our own kernels. */
    private readonly kernels: string | undefined,
  ) {
    this.version = staticText(channel.calls.tendon_version());
    this.results = new ResultSlots(channel);
  }

  async load(options: LoadOptions): Promise<Model | Problem> {
    if (this.closing) return cannotLoad(options.bundle.manifest.id, "the engine is closing");
    const load = this.loadNow(options);
    this.loading.add(load);
    try {
      return await load;
    } finally {
      this.loading.delete(load);
    }
  }

  private async loadNow({
    bundle: { manifest, paths },
    gpu = gpuOptions(),
    parkedBytesMax = 0,
    inferenceMsMax = inferenceMsMaxOf(LIMITS.chunkSecondsDefault),
    unproved = false,
    device,
    replicas,
    threads,
    slots,
    counted,
    onProcessor,
    stages,
  }: LoadOptions): Promise<Model | Problem> {
    if (manifest.parity.unproved && !unproved) {
      return cannotLoad(manifest.id, "nobody has computed its rows (parity.unproved); it is for tendon bench gpu");
    }
    const engines = join(folders().cache, "engines", `ort${PREBUILT.runtime.version}`);
    // Each by its name: what a caller hands over can hold more, such as prices, which are no JSON.
    const asked = { device, replicas, threads, slots, counted, onProcessor, inferenceMsMax, stages };
    const plan = {
      ...asked,
      manifest,
      files: Object.fromEntries(paths),
      parkedBytesMax: parkedBytesMax === "default" ? null : parkedBytesMax,
      // What else TensorRT's engines depend on, the library adds to their folder.
      gpu: { ...gpu, kernels: this.kernels, engineCache: gpu.engineCache ? engines : undefined },
    };
    const text = Buffer.from(JSON.stringify(plan));
    const { calls, engine } = this.channel;
    const ticket = calls.tendon_load(engine, text, text.length);
    if (ticket < 0) return cannotLoad(manifest.id, lastError(calls));
    this.tickets.add(ticket);
    const status = await new Promise<number>((done) => this.channel.wait(ticket, done));
    this.tickets.delete(ticket);
    if (status !== STATUS.ok) {
      const problem = cannotLoad(manifest.id, this.channel.errorText(ticket), KINDS.get(status));
      // A model that could not be loaded keeps its ticket until it is unloaded.
      const gone = new Promise<number>((done) => this.channel.wait(ticket, done));
      this.channel.expect(calls.tendon_unload(engine, ticket), "unload");
      await gone;
      return problem;
    }
    const model = NativeModel.of(this.channel, this.results, ticket, manifest, () => this.models.delete(model));
    this.models.add(model);
    return model;
  }

  stats(): EngineStats {
    const counters = new BigInt64Array(Stats.size / BigInt64Array.BYTES_PER_ELEMENT);
    this.channel.expect(this.channel.calls.tendon_stats(this.channel.engine, new Uint8Array(counters.buffer)), "stats");
    const { size: _, ...offsets } = Stats;
    const read = ([name, offset]: [string, number]) => [name, Number(counters[offset / counters.BYTES_PER_ELEMENT])];
    return Object.fromEntries(Object.entries(offsets).map(read));
  }

  devices(): readonly DeviceFigures[] {
    const { calls, engine } = this.channel;
    return jsonOf((to) => this.channel.expect(calls.tendon_device_figures(engine, to, to.length), "device_figures"));
  }

  drain(device: string): Problem | undefined {
    const { calls, engine } = this.channel;
    const name = Buffer.from(device);
    if (calls.tendon_drain(engine, name, name.length) >= 0) return undefined;
    return new Problem(`${device} cannot be drained: ${lastError(calls)}`);
  }

  async close(): Promise<void> {
    // No new loads from here on: tendon_close would block the event loop until they end.
    this.closing = true;
    for (const ticket of this.tickets)
      this.channel.expect(this.channel.calls.tendon_cancel(this.channel.engine, ticket), "cancel");
    await Promise.all(this.loading);
    await Promise.all([...this.models].map((model) => model.unload()));
    await this.channel.close();
  }
}

/** What a load can fail of, where that is known: it comes before the reason. */
const KINDS: ReadonlyMap<number, string> = new Map([
  [STATUS.outOfMemory, "out of memory"],
  [STATUS.deviceLost, "device lost"],
  [STATUS.badBundle, "bad bundle"],
]);

function cannotLoad(id: string, reason: string, kind?: string): Problem {
  return new Problem([`${id} cannot be loaded`, kind, reason].filter(Boolean).join(": "));
}
