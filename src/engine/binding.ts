/**
 * The native library's calls, declared for bun:ffi, and its memory and completions. native/src/abi says what each call does and who owns each
 * pointer.
 */
import { CString, dlopen, FFIType, JSCallback, type Pointer, toArrayBuffer } from "bun:ffi";
import { present } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import { ERROR_TEXT_BYTES } from "./abi.ts";

const { ptr, u32, i32, f64, function: callback } = FFIType;
/** A ticket is a double: it has more bits than a u32, and unlike an i64 it does not become a BigInt. */
const ticket = f64;

const CALLS = {
  tendon_version: { args: [], returns: ptr },
  tendon_layout: { args: [], returns: ptr },
  tendon_open: { args: [ptr, ptr, u32, ptr, u32, callback, ptr], returns: i32 },
  tendon_close: { args: [ptr], returns: i32 },
  tendon_load: { args: [ptr, ptr, u32], returns: ticket },
  tendon_unload: { args: [ptr, ticket], returns: i32 },
  tendon_placement: { args: [ptr, ticket, ptr, u32], returns: i32 },
  tendon_measure: { args: [ptr, ptr, ptr, u32], returns: i32 },
  tendon_instruction_max: { args: [ptr, ticket], returns: i32 },
  tendon_frame_put: { args: [ptr, ticket, u32, ptr, u32], returns: ticket },
  tendon_frame_spent: { args: [ptr, ticket, ticket], returns: i32 },
  tendon_frame_watch: { args: [ptr, ticket, ticket], returns: i32 },
  tendon_frame_drop: { args: [ptr, ticket, ticket], returns: i32 },
  tendon_observe: { args: [ptr, ptr, ptr, u32], returns: ticket },
  tendon_cancel: { args: [ptr, ticket], returns: i32 },
  tendon_withdraw: { args: [ptr, ticket], returns: i32 },
  tendon_commit: { args: [ptr, ticket], returns: i32 },
  tendon_abort: { args: [ptr, ticket], returns: i32 },
  tendon_slot_free: { args: [ptr, ticket], returns: i32 },
  tendon_session_drop: { args: [ptr, ticket, u32], returns: i32 },
  tendon_result: { args: [ptr, u32], returns: ptr },
  tendon_error_text: { args: [ptr, ticket, ticket, ptr, u32], returns: i32 },
  tendon_last_error: { args: [ptr, u32], returns: i32 },
  tendon_devices: { args: [ptr, u32, ptr, u32], returns: i32 },
  tendon_device_figures: { args: [ptr, ptr, u32], returns: i32 },
  tendon_drain: { args: [ptr, ptr, u32], returns: i32 },
  tendon_stats: { args: [ptr, ptr], returns: i32 },
  tendon_watch_open: { args: [u32, ptr], returns: i32 },
  tendon_watch_read: { args: [ptr, ptr, u32], returns: i32 },
  tendon_watch_close: { args: [ptr], returns: i32 },
  tendon_connection_received: { args: [u32, u32, u32, ptr], returns: i32 },
  tendon_connection_end: { args: [u32, u32, u32], returns: i32 },
  tendon_listener_share: { args: [u32, u32], returns: i32 },
  tendon_listener_receive: { args: [u32, u32], returns: i32 },
  tendon_listener_prefer_last: { args: [u32], returns: i32 },
  tendon_bodies_open: { args: [callback, ptr], returns: i32 },
  tendon_bodies_close: { args: [ptr], returns: i32 },
  tendon_body_make: { args: [ptr, u32], returns: i32 },
  tendon_body_write: { args: [ptr, u32, ptr, u32], returns: i32 },
  tendon_body_scan: { args: [ptr, u32, u32, ptr], returns: i32 },
  tendon_body_result: { args: [ptr, u32, ptr], returns: i32 },
  tendon_body_free: { args: [ptr, u32], returns: i32 },
} as const;

export type Calls = ReturnType<typeof dlopen<typeof CALLS>>["symbols"];
/** What the library hands out: an engine, the threads of bodies, a watch. */
export type Handle = Pointer;

/** Opens the library; it stays open for the life of the process. */
export function bindLibrary(path: string): Calls | Problem {
  try {
    return dlopen(path, CALLS).symbols;
  } catch (error) {
    return new Problem(`the native library cannot be opened: ${(error as Error).message}; see: tendon doctor`);
  }
}

/** The handle that a call writes; undefined where it refuses. */
export function handleOf(open: (out: BigUint64Array) => number): Handle | undefined {
  const out = new BigUint64Array(1);
  return open(out) < 0 ? undefined : (Number(out[0]) as Handle);
}

/** What native threads report when something has ended, one call each on this thread: of what, and how. */
export class Completions {
  private readonly callback: JSCallback;

  constructor(id: "f64" | "u32", ended: (id: number, status: number) => void) {
    this.callback = new JSCallback(ended, { args: [id, "i32"], returns: "void", threadsafe: true });
  }

  get address(): Pointer {
    return present(this.callback.ptr, "the callback's address");
  }

  /** To be called when the native threads have ended: what they have reported is still handled, in the next turn of the event loop. */
  async close(): Promise<void> {
    await new Promise((done) => setImmediate(done));
    this.callback.close();
  }
}

/** Memory of the library, of which each call says how long it is valid. */
export function memoryAt(address: Pointer | bigint, bytes: number): ArrayBuffer {
  return toArrayBuffer(Number(address) as Pointer, 0, bytes);
}

/** Descriptor of an empty file in memory, closed in child processes; negative where the system gives none. */
export function memoryFile(name: string): number {
  const libc = dlopen("libc.so.6", { memfd_create: { args: [FFIType.cstring, FFIType.u32], returns: FFIType.i32 } });
  const closeOnExec = 1;
  const descriptor = libc.symbols.memfd_create(Buffer.from(`${name}\0`), closeOnExec);
  libc.close();
  return descriptor;
}

/** The JSON that a call writes, of which it returns the length also where the bytes do not suffice; it is then called again. */
export function jsonOf(write: (to: Buffer) => number, bytes = 4_096) {
  let to = Buffer.alloc(bytes);
  for (;;) {
    const length = write(to);
    if (length <= to.length) return JSON.parse(to.toString("utf8", 0, length));
    to = Buffer.alloc(length);
  }
}

/** A static C string of the library. */
export function staticText(address: Pointer | bigint | null): string {
  return typeof address === "number" ? new CString(address).toString() : "";
}

const text = Buffer.alloc(ERROR_TEXT_BYTES);

/** The text of this thread's last refused call. */
export function lastError(calls: Calls): string {
  return text.toString("utf8", 0, Math.max(0, calls.tendon_last_error(text, text.length)));
}

/** The text of the failure that a completion reported. */
export function errorText(calls: Calls, engine: Pointer, model: number, of: number): string {
  return text.toString("utf8", 0, Math.max(0, calls.tendon_error_text(engine, model, of, text, text.length)));
}
