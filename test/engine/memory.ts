/** What a session's memory holds: a call that only the library of the tests has, and that the fake engine answers by itself. */
import "../rehearsal-library.ts";
import { dlopen, FFIType, ptr } from "bun:ffi";
import type { Model } from "../../src/engine/engine.ts";
import { locateLibraries } from "../../src/engine/library.ts";
import { NativeModel } from "../../src/engine/model.ts";
import { present } from "../../src/std/assert.ts";
import { ok } from "./opened.ts";

export interface Memory {
  readonly frames: number;
  /** A digest of the values, which does not depend on the slot. */
  readonly digest: bigint;
}

/** A model that is not the native library's. */
export interface FakeMemory {
  memory(slot: number): Memory;
}

const { library } = ok(await locateLibraries());
const { symbols } = dlopen(library, {
  tendon_memory: { args: [FFIType.ptr, FFIType.f64, FFIType.u32, FFIType.ptr], returns: FFIType.i32 },
});

/** The content of a session slot that no inference has. */
export function memoryOf(model: Model, slot: number): Memory {
  if (!(model instanceof NativeModel)) return (model as Model & FakeMemory).memory(slot);
  const content = new BigUint64Array(2);
  const { channel, ticket } = model;
  channel.expect(symbols.tendon_memory(channel.engine, ticket, slot, ptr(content)), "memory");
  const [frames, digest] = content;
  return { frames: Number(frames), digest: present(digest, "a digest") };
}
