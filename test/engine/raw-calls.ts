/** The library with one model on `echo`, called as the program calls it, for tests of single calls. */
import { JSCallback, type Pointer, ptr } from "bun:ffi";
import { expect } from "bun:test";
import * as abi from "../../src/engine/abi.ts";
import { bindLibrary, type Calls } from "../../src/engine/binding.ts";
import { type Installation, locateLibraries } from "../../src/engine/library.ts";
import { bundleOf, parityOf } from "../bundle/built.ts";
import { ok } from "./opened.ts";

const { STATUS } = abi;

let installed: Installation;
export let calls: Calls;
export let engine: Pointer;
export let model: number;
export let jpegs: readonly Uint8Array[];
let state: number[];
const waiting = new Map<number, (status: number) => void>();
export const early = new Map<number, number>();
const callback = new JSCallback(
  (ticket: number, status: number) => {
    const done = waiting.get(ticket);
    if (done) done(status);
    else early.set(ticket, status);
    waiting.delete(ticket);
  },
  { args: ["f64", "i32"], returns: "void", threadsafe: true },
);

/** The status of a ticket's one completion. */
export function completion(ticket: number): Promise<number> {
  expect(ticket).toBeGreaterThan(0);
  const status = early.get(ticket);
  early.delete(ticket);
  return status === undefined ? new Promise((done) => waiting.set(ticket, done)) : Promise.resolve(status);
}

export function open(changes: Record<string, number> = {}, paths: { runtime?: string; jpeg?: string } = {}) {
  const options = new DataView(new ArrayBuffer(abi.OpenOptions.size));
  const values = { abi_version: abi.ABI_VERSION, decode_threads: 2, chunks_max: 4, frames_max: 16, ...changes };
  for (const [name, value] of Object.entries(values)) {
    options.setUint32(abi.OpenOptions[name as keyof typeof values], value, true);
  }
  const [runtime, jpeg] = [Buffer.from(paths.runtime ?? installed.runtime), Buffer.from(paths.jpeg ?? installed.jpeg)];
  const out = new BigUint64Array(1);
  const status = calls.tendon_open(
    new Uint8Array(options.buffer),
    runtime,
    runtime.length,
    jpeg,
    jpeg.length,
    callback.ptr as Pointer,
    ptr(out),
  );
  return { status, handle: Number(out[0]) as Pointer };
}

export function request(frames: readonly number[], changes: Record<string, number> = {}): Uint8Array {
  const view = new DataView(new ArrayBuffer(abi.ObserveRequest.size));
  const { model: of = model, ...rest } = changes;
  view.setFloat64(abi.ObserveRequest.model, of, true);
  const values = {
    slot: abi.NO_SLOT,
    step: 0,
    fail_step: abi.NO_STEP,
    frames_len: frames.length,
    state_len: state.length,
    ...rest,
  };
  for (const [name, value] of Object.entries(values)) {
    view.setUint32(abi.ObserveRequest[name as "slot"], value, true);
  }
  for (const [index, frame] of frames.entries()) view.setFloat64(abi.ObserveRequest.frames + 8 * index, frame, true);
  for (const [index, value] of state.entries()) view.setFloat32(abi.ObserveRequest.state + 4 * index, value, true);
  return new Uint8Array(view.buffer);
}

export const instruction = Buffer.from("pick up the block");

/** What a call returns that has a completion to come. */
export const LATER = 1;

export function put(): number[] {
  return jpegs.map((jpeg) => calls.tendon_frame_put(engine, model, 0, jpeg, jpeg.length));
}

/** How the decode of a frame ends. */
export async function watched(frame: number): Promise<number> {
  expect(frame).toBeGreaterThan(0);
  const status = calls.tendon_frame_watch(engine, model, frame);
  return status === LATER ? await completion(frame) : status;
}

export async function decoded(): Promise<number[]> {
  const frames = put();
  for (const frame of frames) expect(await watched(frame)).toBe(STATUS.ok);
  return frames;
}

export function free(run: number): void {
  expect(calls.tendon_commit(engine, run)).toBe(STATUS.ok);
  expect(calls.tendon_slot_free(engine, run)).toBe(STATUS.ok);
}

export async function start(): Promise<void> {
  installed = ok(await locateLibraries());
  calls = ok(bindLibrary(installed.library));
  const opened = open();
  expect(opened.status).toBe(STATUS.ok);
  engine = opened.handle;
  const bundle = await bundleOf("molmoact2-yam");
  const plan = Buffer.from(
    JSON.stringify({
      manifest: bundle.manifest,
      files: Object.fromEntries(bundle.paths),
      device: "echo",
      replicas: 1,
      threads: 1,
      slots: null,
      inferenceMsMax: 15_000,
    }),
  );
  model = calls.tendon_load(engine, plan, plan.length);
  expect(await completion(model)).toBe(STATUS.ok);
  const { given } = await parityOf(bundle);
  jpegs = given.jpegs;
  state = [...given.state];
}

export function stop(): void {
  expect(calls.tendon_close(engine)).toBe(STATUS.ok);
  callback.close();
}
