/** nvJPEG as the CPU plays it (native/cuda/nvjpeg_host.cpp), on a played driver: what it does wrong on demand, and what it has counted. */
import { dlopen, FFIType } from "bun:ffi";
import { locateLibraries } from "../../src/engine/library.ts";
import { ok } from "./opened.ts";
import { type PlayedDriver, played } from "./played-driver.ts";

/** The places of `Setting`, all 0 at first: levels added to values, to one of how many; the width of pictures that are refused; how long a decode takes; the width of pictures that it finds another one in; it takes damaged files. */
const SETTINGS = ["levels", "refusedWidth", "decodeUs", "levelsEvery", "otherWidth", "lenient"] as const;
/** Those of `Count`. A fault is what no caller may do. */
const COUNTS = ["handles", "states", "decoded", "refused", "faults"] as const;

export class PlayedNvjpeg {
  private constructor(
    readonly path: string,
    private readonly calls: ReturnType<typeof open>,
  ) {}

  static async make(driver: PlayedDriver): Promise<PlayedNvjpeg> {
    const { jpeg } = ok(await locateLibraries());
    const path = played("nvjpeg_host.cpp");
    const calls = open(path);
    const text = (path: string) => Buffer.from(`${path}\0`);
    if (calls.played_begin(text(jpeg), text(driver.path)) !== 0) throw new Error("no libjpeg-turbo, or no driver");
    return new PlayedNvjpeg(path, calls);
  }

  /** What is not named is 0. */
  set(settings: Partial<Record<(typeof SETTINGS)[number], number>> = {}): void {
    for (const [place, name] of SETTINGS.entries()) this.calls.played_set(place, settings[name] ?? 0);
  }

  counts(): Record<(typeof COUNTS)[number], number> {
    const all = COUNTS.map((name, place) => [name, Number(this.calls.played_count(place))]);
    return Object.fromEntries(all) as Record<(typeof COUNTS)[number], number>;
  }
}

function open(path: string) {
  return dlopen(path, {
    played_begin: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
    played_set: { args: [FFIType.u64, FFIType.u64], returns: FFIType.void },
    played_count: { args: [FFIType.u64], returns: FFIType.u64 },
  }).symbols;
}
