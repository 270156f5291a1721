/**
 * Times every call into the native library and every callback out of it, below the binding: wraps what `bun:ffi` hands out.
 * Must be called before the binding is imported for the first time, so only in a process made for measuring.
 */
import type { JSCallback as Callback, FFIFunction } from "bun:ffi";

export interface Timed {
  /** Name of the native function, or `callback`. */
  readonly name: string;
  /** Microseconds of wall clock. */
  readonly us: number;
  /** Microseconds in which this thread had a core: without interruptions by other threads and by the machine's host. */
  readonly cpuUs: number;
}

type AnyFunction = (...args: never[]) => unknown;

const THREAD_CPU_TIME = 3;
// Not imported: an import copies the names of the module, and later imports would not see the wrapped ones.
const libc = (import.meta.require("bun:ffi") as typeof import("bun:ffi")).dlopen("libc.so.6", {
  clock_gettime: { args: ["int", "ptr"], returns: "int" },
}).symbols;
const clock = new BigInt64Array(2);

/** CPU time of this thread, microseconds. */
export function threadUs(): number {
  libc.clock_gettime(THREAD_CPU_TIME, clock);
  return Number(clock[0]) * 1e6 + Number(clock[1]) / 1e3;
}

/** Times `call` and adds an entry to `log`. */
export function timeOne<T>(log: Timed[], name: string, call: () => T): T {
  const cpu = threadUs();
  const before = performance.now();
  try {
    return call();
  } finally {
    const us = (performance.now() - before) * 1000;
    log.push({ name, us, cpuUs: threadUs() - cpu });
  }
}

/** Wraps `bun:ffi`. Returns the list to which each call from now on is added; the caller empties it. */
export function timeForeignCalls(): Timed[] {
  const log: Timed[] = [];
  const timed =
    (name: string, call: AnyFunction): AnyFunction =>
    (...args) =>
      timeOne(log, name, () => call(...args));
  // The module object of `require` is the one that a later `import` copies its names from.
  const ffi = import.meta.require("bun:ffi") as {
    dlopen: (path: string, table: Record<string, FFIFunction>) => { symbols: Record<string, AnyFunction> };
    JSCallback: new (call: AnyFunction, definition: FFIFunction) => Callback;
  };
  const { dlopen: open, JSCallback } = ffi;
  ffi.dlopen = (path, table) => {
    const library = open(path, table);
    const symbols = Object.entries(library.symbols).map(([name, call]) => [name, timed(name, call)] as const);
    return { ...library, symbols: Object.fromEntries(symbols) };
  };
  ffi.JSCallback = class extends JSCallback {
    constructor(call: AnyFunction, definition: FFIFunction) {
      super(timed("callback", call), definition);
    }
  };
  return log;
}
