/** The NVIDIA driver as the CPU plays it (native/cuda/driver_host.h), with what it has counted. */
import { dlopen, FFIType } from "bun:ffi";
import { copyFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testRequirement } from "../../src/config/environment.ts";
import { present } from "../../src/std/assert.ts";

const COMPILER = Bun.which("c++");
const absent = COMPILER === null && testRequirement() === "none";

/** The places of `Counts`. */
const COUNTS = [
  "contexts",
  "streams",
  "events",
  "registered",
  "registeredBytes",
  "registeredEver",
  "faults",
  "contextsSet",
  "records",
  // Threads that ended and were relaxed until then.
  "relaxed",
  "pushes",
  "memories",
  "waits",
  // 1 if threads that wait for the device sleep.
  "sleeping",
  // Threads that ended and had entered a context.
  "entered",
  // Answers that the device is lost.
  "losses",
] as const;

export const PLAYED = {
  absent,
  title: absent ? "a played driver: skipped, there is no C++ compiler: apt install g++" : "a played driver",
};

export class PlayedDriver {
  private constructor(
    readonly path: string,
    private readonly calls: ReturnType<typeof open>,
  ) {}

  /** Another one each time, each with another device. */
  static make(): PlayedDriver {
    built ??= played("kernels.cu");
    const path = join(mkdtempSync(join(tmpdir(), "tendon-played-")), "libplayed.so");
    copyFileSync(built, path);
    return new PlayedDriver(path, open(path));
  }

  /** What replicas have of it now, and what was ever done, by the tests of other files in this process too. A fault is what a real driver refuses, or breaks of later. */
  counts(): Record<(typeof COUNTS)[number], number> {
    const all = COUNTS.map((name, place) => [name, Number(this.calls.cpu_count(place))]);
    return Object.fromEntries(all) as Record<(typeof COUNTS)[number], number>;
  }

  /** How much more host memory can be registered; without a number: all. */
  registerLeft(bytes?: number): void {
    this.calls.cpu_register_left(bytes ?? 2n ** 64n - 1n);
  }

  /** How much of the device's memory is free; without a number: 64 GiB. Of as much and 16 GiB in all. */
  deviceFree(bytes = 64 * 2 ** 30): void {
    this.calls.cpu_device_free(bytes);
  }

  /** How large one allocation of device memory may be; without a number: as large as it wants. */
  memoryLeft(bytes?: number): void {
    this.calls.cpu_memory_left(bytes ?? 2n ** 64n - 1n);
  }

  refuseStreams(refuse: boolean): void {
    this.calls.cpu_streams_refused(refuse ? 1 : 0);
  }

  /** A kernel is loaded when it is launched, and cannot be. */
  refuseLaunches(refuse: boolean): void {
    this.calls.cpu_launches_refused(refuse ? 1 : 0);
  }

  /** Every wait for a stream ends with this number of a lost device, and nothing may be given back from then on; 0: the device works. */
  lose(code: number): void {
    this.calls.cpu_lose(code);
  }
}

let built: string | undefined;

/** A library of what the CPU plays, from its source in native/cuda/. */
function played(source: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "tendon-played-")), "libplayed.so");
  const file = join(import.meta.dir, "../../native/cuda", source);
  // Otherwise the loader gives all of them the same variables.
  const words = [
    "-std=c++17",
    "-fno-gnu-unique",
    "-O1",
    "-ffp-contract=off",
    "-shared",
    "-fPIC",
    "-x",
    "c++",
    file,
    "-o",
    path,
  ];
  const compiled = Bun.spawnSync([present(COMPILER ?? undefined, "a C++ compiler"), ...words]);
  if (compiled.exitCode !== 0) throw new Error(compiled.stderr.toString());
  return path;
}

function open(path: string) {
  return dlopen(path, {
    cpu_count: { args: [FFIType.u64], returns: FFIType.u64 },
    cpu_register_left: { args: [FFIType.u64], returns: FFIType.void },
    cpu_device_free: { args: [FFIType.u64], returns: FFIType.void },
    cpu_memory_left: { args: [FFIType.u64], returns: FFIType.void },
    cpu_streams_refused: { args: [FFIType.i32], returns: FFIType.void },
    cpu_launches_refused: { args: [FFIType.i32], returns: FFIType.void },
    cpu_lose: { args: [FFIType.i32], returns: FFIType.void },
  }).symbols;
}
