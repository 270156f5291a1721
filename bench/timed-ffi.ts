/**
 * Times every call into the native library and every callback out of it, below the binding: wraps what `bun:ffi` hands out.
 * Must be called before the binding is imported for the first time, so only in a process made for measuring.
 */
import type * as Ffi from "bun:ffi";

export interface Timed {
  /** Name of the native function, or `callback`. */
  readonly name: string;
  readonly us: number;
}

type AnyFunction = (...args: never[]) => unknown;

/** Returns the list that grows with each call from now on; the caller empties it as it likes. */
export function timeForeignCalls(): Timed[] {
  const log: Timed[] = [];
  const timed =
    (name: string, call: AnyFunction): AnyFunction =>
    (...args) => {
      const before = performance.now();
      try {
        return call(...args);
      } finally {
        log.push({ name, us: (performance.now() - before) * 1000 });
      }
    };
  // The module object of `require` is the one that a later `import` copies its names from.
  const ffi = import.meta.require("bun:ffi") as {
    dlopen: (path: string, table: Record<string, Ffi.FFIFunction>) => { symbols: Record<string, AnyFunction> };
    JSCallback: new (call: AnyFunction, definition: Ffi.FFIFunction) => Ffi.JSCallback;
  };
  const { dlopen, JSCallback } = ffi;
  ffi.dlopen = (path, table) => {
    const library = dlopen(path, table);
    const symbols = Object.entries(library.symbols).map(([name, call]) => [name, timed(name, call)] as const);
    return { ...library, symbols: Object.fromEntries(symbols) };
  };
  ffi.JSCallback = class extends JSCallback {
    constructor(call: AnyFunction, definition: Ffi.FFIFunction) {
      super(timed("callback", call), definition);
    }
  };
  return log;
}
