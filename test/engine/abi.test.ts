/** The C ABI itself: the generated layout, and every call's answer to right and wrong use. */
import { type Pointer, toArrayBuffer } from "bun:ffi";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as abi from "../../src/engine/abi.ts";
import { errorText, lastError, staticText } from "../../src/engine/binding.ts";
import { present } from "../../src/std/assert.ts";
import {
  calls,
  completion,
  decoded,
  early,
  engine,
  free,
  instruction,
  jpegs,
  LATER,
  model,
  open,
  put,
  request,
  start,
  stop,
  watched,
} from "./raw-calls.ts";

const { STATUS, KIND } = abi;

beforeAll(start);
afterAll(stop);

/** abi.ts as a table: its names are data here. */
const generated: Record<string, unknown> = { ...abi };

describe("layout", () => {
  test("sizes, offsets and constants of abi.ts are those that the library reports", () => {
    const reported = JSON.parse(staticText(calls.tendon_layout()));
    for (const [name, { size, fields }] of Object.entries<{ size: number; fields: Record<string, number> }>(
      reported.structs,
    )) {
      expect(generated[name]).toEqual({ size, ...fields });
    }
    expect(Object.keys(reported.structs).length).toBe(8);
    for (const [name, value] of Object.entries(reported.constants)) expect(generated[name]).toBe(value);
  });

  test("abi.ts is what the generator writes", async () => {
    const written = Bun.spawnSync([join(import.meta.dir, "../../native/target/release/abi")]).stdout.toString();
    const file = await Bun.file(join(import.meta.dir, "../../src/engine/abi.ts")).text();
    expect(file).toBe(written);
  });

  test("the library that ships has no call that tests alone make", async () => {
    const folder = join(import.meta.dir, "../../native/target/release");
    const calls = async (file: string) => {
      const bytes = Buffer.from(await Bun.file(join(folder, file)).arrayBuffer());
      return ["tendon_observe", "tendon_rehearse", "tendon_memory"].filter((name) => bytes.includes(`${name}\0`));
    };
    expect(await calls("libtendon.so")).toEqual(["tendon_observe"]);
    expect(await calls("libtendon_rehearsal.so")).toEqual(["tendon_observe", "tendon_rehearse", "tendon_memory"]);
  });

  test("the version is the crate's", () => expect(staticText(calls.tendon_version())).toMatch(/^\d+\.\d+\.\d+$/));
});

describe("open", () => {
  test("another ABI version, numbers out of range and missing libraries are refused with a reason", () => {
    const refused = (opened: { status: number }) => [opened.status, lastError(calls)];
    expect(refused(open({ abi_version: 99 }))).toEqual([STATUS.misuse, expect.stringContaining("different versions")]);
    expect(refused(open({ decode_threads: 0 }))).toEqual([STATUS.misuse, "decode_threads is 0, expected 1 to 256"]);
    expect(refused(open({ chunks_max: 70_000 }))).toEqual([STATUS.misuse, expect.stringContaining("chunks_max")]);
    expect(refused(open({ frames_max: 5_000 }))).toEqual([STATUS.misuse, expect.stringContaining("frames_max")]);
    expect(refused(open({}, { jpeg: "/nonexistent.so" }))).toEqual([
      STATUS.load,
      expect.stringContaining("libturbojpeg"),
    ]);
  });

  test("an engine without a model opens and closes, many times", () => {
    for (let index = 0; index < 20; index++) expect(calls.tendon_close(open().handle)).toBe(STATUS.ok);
  });
});

describe("frames", () => {
  test("frame_put gives tickets of its kind; frame_drop gives them back once", async () => {
    const [frame] = await decoded().then((frames) => {
      for (const extra of frames.slice(1)) expect(calls.tendon_frame_drop(engine, model, extra)).toBe(STATUS.ok);
      return frames;
    });
    expect(Math.floor((frame ?? 0) / abi.TICKET_KIND_STEP)).toBe(KIND.frame);
    expect(calls.tendon_frame_drop(engine, model, frame ?? 0)).toBe(STATUS.ok);
    expect(calls.tendon_frame_drop(engine, model, frame ?? 0)).toBe(STATUS.misuse);
    expect(lastError(calls)).toContain("stale frame");
  });

  test("a refused frame has a text and still needs its drop", async () => {
    const bad = Buffer.from([0xff, 0xd8, 0xff, 0x00]);
    const frame = calls.tendon_frame_put(engine, model, 0, bad, bad.length);
    expect(await watched(frame)).toBe(STATUS.image);
    expect(calls.tendon_frame_watch(engine, model, frame)).toBe(STATUS.image);
    expect(errorText(calls, engine, model, frame)).toContain("truncated");
    expect(calls.tendon_frame_drop(engine, model, frame)).toBe(STATUS.ok);
  });

  test("a frame dropped while it is pending completes as cancelled, and its slot comes back", async () => {
    const jpeg = jpegs[0] ?? new Uint8Array();
    for (let round = 0; round < 50; round++) {
      const frame = calls.tendon_frame_put(engine, model, 0, jpeg, jpeg.length);
      const dropped = calls.tendon_frame_drop(engine, model, frame);
      expect(calls.tendon_frame_drop(engine, model, frame)).toBe(STATUS.misuse);
      if (dropped === LATER) expect(await completion(frame)).toBe(STATUS.cancelled);
      else expect(dropped).toBe(STATUS.ok);
    }
    for (const frame of await decoded()) expect(calls.tendon_frame_drop(engine, model, frame)).toBe(STATUS.ok);
  });

  test("a frame that is too long and a null pointer are misuse", () => {
    const jpeg = jpegs[0] ?? new Uint8Array();
    const long = new Uint8Array(abi.JPEG_BYTES_MAX + 1);
    expect(calls.tendon_frame_put(engine, model, 0, long, long.length)).toBe(STATUS.misuse);
    expect(calls.tendon_frame_put(engine, model, 0, null, 5)).toBe(STATUS.misuse);
    expect(calls.tendon_frame_put(engine, 12345, 0, jpeg, jpeg.length)).toBe(STATUS.misuse);
  });
});

describe("runs", () => {
  test("an inference waits for its frames: it completes once, and its frames do not complete", async () => {
    const frames = put();
    const run = calls.tendon_observe(engine, request(frames), instruction, instruction.length);
    expect(await completion(run)).toBe(STATUS.ok);
    expect(frames.filter((frame) => early.has(frame))).toEqual([]);
    free(run);
  });

  test("a frame that cannot be decoded ends its inference, known before or not; the first one is named", async () => {
    const bad = Buffer.from([0xff, 0xd8, 0xff, 0x00]);
    for (const known of [true, false]) {
      const [file = new Uint8Array()] = jpegs;
      const first = calls.tendon_frame_put(engine, model, 0, file, file.length);
      const second = calls.tendon_frame_put(engine, model, 0, bad, bad.length);
      const third = calls.tendon_frame_put(engine, model, 0, bad, bad.length);
      for (const frame of known ? [second, third] : []) expect(await watched(frame)).toBe(STATUS.image);
      const run = calls.tendon_observe(engine, request([first, second, third]), instruction, instruction.length);
      expect(await completion(run)).toBe(STATUS.image);
      expect(errorText(calls, engine, model, run)).toContain("truncated");
      const result = new DataView(
        toArrayBuffer(
          present(calls.tendon_result(engine, run % abi.TICKET_INDEX_COUNT), "a result"),
          0,
          abi.ChunkResult.size,
        ),
      );
      expect(result.getUint32(abi.ChunkResult.bad_frame, true)).toBe(1);
      expect(result.getUint32(abi.ChunkResult.frames_us, true)).toBeGreaterThan(0);
      expect(calls.tendon_commit(engine, run)).toBe(STATUS.misuse);
      expect(calls.tendon_abort(engine, run)).toBe(STATUS.ok);
      expect(calls.tendon_slot_free(engine, run)).toBe(STATUS.ok);
    }
  });

  test("an inference whose frames are at the decoders is taken back or cancelled, and ends with the last of them", async () => {
    for (let round = 0; round < 50; round++) {
      const frames = put();
      const run = calls.tendon_observe(engine, request(frames), instruction, instruction.length);
      const ended = round % 2 === 0 ? calls.tendon_withdraw(engine, run) : calls.tendon_cancel(engine, run);
      const status = await completion(run);
      // What had started by then is not taken back.
      if (status === STATUS.ok) expect(ended).toBe(0);
      else expect(status).toBe(STATUS.cancelled);
      expect(calls.tendon_abort(engine, run)).toBe(STATUS.ok);
      expect(calls.tendon_slot_free(engine, run)).toBe(STATUS.ok);
    }
    for (const frame of await decoded()) expect(calls.tendon_frame_drop(engine, model, frame)).toBe(STATUS.ok);
  });

  test("a frame that is watched cannot be observed before its completion", async () => {
    const frames = put();
    const [first = 0] = frames;
    const status = calls.tendon_frame_watch(engine, model, first);
    if (status === LATER) {
      const refused = calls.tendon_observe(engine, request(frames), instruction, instruction.length);
      expect(refused).toBe(STATUS.misuse);
      expect(lastError(calls)).toContain("watched");
      expect(await completion(first)).toBe(STATUS.ok);
    }
    const run = calls.tendon_observe(engine, request(frames), instruction, instruction.length);
    expect(await completion(run)).toBe(STATUS.ok);
    expect(calls.tendon_frame_watch(engine, model, first)).toBe(STATUS.misuse);
    free(run);
  });

  test("observe, commit, slot_free: each once and in order; the result lies at its fixed address", async () => {
    const run = calls.tendon_observe(engine, request(await decoded()), instruction, instruction.length);
    expect(Math.floor(run / abi.TICKET_KIND_STEP)).toBe(KIND.chunk);
    const done = await completion(run);
    expect(done).toBe(STATUS.ok);
    const index = run % abi.TICKET_INDEX_COUNT;
    expect(calls.tendon_result(engine, index)).toBe(calls.tendon_result(engine, index));
    expect(calls.tendon_slot_free(engine, run)).toBe(STATUS.misuse);
    expect(calls.tendon_commit(engine, run)).toBe(STATUS.ok);
    expect(calls.tendon_abort(engine, run)).toBe(STATUS.misuse);
    expect(calls.tendon_slot_free(engine, run)).toBe(STATUS.ok);
    expect(calls.tendon_slot_free(engine, run)).toBe(STATUS.misuse);
    expect(calls.tendon_cancel(engine, run)).toBe(STATUS.misuse);
  });

  test("abort closes an inference as commit does", async () => {
    const run = calls.tendon_observe(engine, request(await decoded()), instruction, instruction.length);
    await completion(run);
    expect(calls.tendon_abort(engine, run)).toBe(STATUS.ok);
    expect(calls.tendon_slot_free(engine, run)).toBe(STATUS.ok);
  });

  test("cancel of a finished inference changes nothing", async () => {
    const run = calls.tendon_observe(engine, request(await decoded()), instruction, instruction.length);
    expect(await completion(run)).toBe(STATUS.ok);
    expect(calls.tendon_cancel(engine, run)).toBe(STATUS.ok);
    free(run);
  });

  test("a fifth inference is refused while four results are unread; the caller keeps its frames", async () => {
    const runs: number[] = [];
    for (let index = 0; index < 4; index++) {
      const run = calls.tendon_observe(engine, request(await decoded()), instruction, instruction.length);
      await completion(run);
      runs.push(run);
    }
    const frames = await decoded();
    expect(calls.tendon_observe(engine, request(frames), instruction, instruction.length)).toBe(STATUS.busy);
    for (const frame of frames) expect(calls.tendon_frame_drop(engine, model, frame)).toBe(STATUS.ok);
    for (const run of runs) free(run);
  });

  test("wrong counts, a memory slot and frames that are taken or stale are misuse and take nothing", async () => {
    const frames = await decoded();
    const misuses: [Uint8Array, string][] = [
      [request(frames.slice(1)), "2 frames, expected 3"],
      [request(frames, { state_len: 3 }), "3 state values, expected 14"],
      [request(frames, { slot: 0 }), "no episode memory"],
      [request([frames[0] ?? 0, frames[0] ?? 0, frames[1] ?? 0]), "already taken"],
      [request([frames[0] ?? 0, frames[1] ?? 0, 77]), "stale"],
      [request(frames, { model: 0 }), "unknown model"],
    ];
    for (const [bytes, reason] of misuses) {
      expect(calls.tendon_observe(engine, bytes, instruction, instruction.length)).toBe(STATUS.misuse);
      expect(lastError(calls)).toContain(reason);
    }
    const run = calls.tendon_observe(engine, request(frames), instruction, instruction.length);
    expect(await completion(run)).toBe(STATUS.ok);
    free(run);
  });

  test("a frame of an inference cannot be dropped", async () => {
    const frames = await decoded();
    const run = calls.tendon_observe(engine, request(frames), instruction, instruction.length);
    expect(calls.tendon_frame_drop(engine, model, frames[0] ?? 0)).toBe(STATUS.misuse);
    await completion(run);
    free(run);
  });
});

describe("the rest", () => {
  test("measure counts tokens or says that the text is too long", () => {
    expect(calls.tendon_measure(engine, request([]), instruction, instruction.length)).toBeGreaterThan(3 * 64);
    const long = Buffer.alloc(100_000, "x");
    expect(calls.tendon_measure(engine, request([]), long, long.length)).toBe(STATUS.tooLong);
    expect(calls.tendon_measure(engine, request([]), Buffer.from([0xff]), 1)).toBe(STATUS.misuse);
    expect(calls.tendon_instruction_max(engine, model)).toBeWithin(64 * 1024, long.length);
    expect(calls.tendon_instruction_max(engine, 0)).toBe(STATUS.misuse);
  });

  test("placement tells the length that it needs", () => {
    const none = Buffer.alloc(1);
    const length = calls.tendon_placement(engine, model, none, 0);
    const buffer = Buffer.alloc(length);
    expect(calls.tendon_placement(engine, model, buffer, length)).toBe(length);
    expect(JSON.parse(buffer.toString())).toEqual({
      ...{ device: "echo", devices: ["echo"], refused: [], replicas: 1, slots: 0, parity: [], lost: [] },
      ...{
        flow: "steps",
        flowReason: null,
        deviceBytes: 0,
        copies: { toDevice: 0, fromDevice: 0 },
      },
      deviceWeights: { sharedBytes: 0, copiedBytes: 0, ownBytes: 0 },
      sessionMemory: { places: 0, placesOnDevice: 0, slotBytes: 0 },
    });
  });

  test("the figures of the devices tell the length that they need, and count what runs there", () => {
    const length = calls.tendon_device_figures(engine, null, 0);
    const buffer = Buffer.alloc(length);
    expect(calls.tendon_device_figures(engine, buffer, length)).toBe(length);
    expect(JSON.parse(buffer.toString())).toEqual([
      {
        ...{ device: "echo", health: "ready", reason: null, replicas: 1, replicasOut: 0, framesWaiting: 0 },
        ...{ inferences: 0, slots: 0, slotsHeld: 0 },
      },
    ]);
  });

  test("a device without replicas, and the last one of a model, are not drained", () => {
    const drain = (name: string) => [calls.tendon_drain(engine, Buffer.from(name), name.length), lastError(calls)];
    expect(drain("cuda:0")).toEqual([STATUS.misuse, "no model runs on a device 'cuda:0'"]);
    expect(drain("echo")).toEqual([STATUS.misuse, expect.stringContaining("no replica that works elsewhere")]);
  });

  test("session_drop on a model without episode memory is misuse", () => {
    expect(calls.tendon_session_drop(engine, model, 0)).toBe(STATUS.misuse);
    expect(lastError(calls)).toContain("no such slot");
  });

  test("result is null outside the slots", () => expect(calls.tendon_result(engine, 4)).toBeNull());

  test("a null engine is misuse in every call", () => {
    const none = null as unknown as Pointer;
    const [bytes, one] = [Buffer.alloc(8), Buffer.alloc(1)];
    expect([
      calls.tendon_close(none),
      calls.tendon_load(none, one, 1),
      calls.tendon_unload(none, 1),
      calls.tendon_placement(none, 1, bytes, 8),
      calls.tendon_measure(none, request([]), one, 1),
      calls.tendon_instruction_max(none, 1),
      calls.tendon_frame_put(none, 1, 0, one, 1),
      calls.tendon_frame_drop(none, 1, 1),
      calls.tendon_frame_watch(none, 1, 1),
      calls.tendon_observe(none, request([]), one, 1),
      calls.tendon_cancel(none, 1),
      calls.tendon_commit(none, 1),
      calls.tendon_abort(none, 1),
      calls.tendon_slot_free(none, 1),
      calls.tendon_session_drop(none, 1, 0),
      calls.tendon_error_text(none, 0, 1, bytes, 8),
      calls.tendon_device_figures(none, bytes, 8),
      calls.tendon_drain(none, one, 1),
      calls.tendon_stats(none, new Uint8Array(abi.Stats.size)),
    ]).toEqual(Array(19).fill(STATUS.misuse));
    expect(calls.tendon_result(none, 0)).toBeNull();
  });

  test("a load plan that is none is refused by its completion; unload gives the place back, once", async () => {
    const plan = Buffer.from("{}");
    const ticket = calls.tendon_load(engine, plan, plan.length);
    expect(await completion(ticket)).toBe(STATUS.misuse);
    expect(errorText(calls, engine, 0, ticket)).toContain("load plan");
    expect(calls.tendon_unload(engine, ticket)).toBe(STATUS.ok);
    expect(await completion(ticket)).toBe(STATUS.ok);
    expect(calls.tendon_unload(engine, ticket)).toBe(STATUS.misuse);
  });

  test("stats count what was done", () => {
    const stats = new DataView(new ArrayBuffer(abi.Stats.size));
    expect(calls.tendon_stats(engine, new Uint8Array(stats.buffer))).toBe(STATUS.ok);
    expect(stats.getBigUint64(abi.Stats.frames_free, true)).toBe(16n);
    expect(stats.getBigUint64(abi.Stats.chunks_free, true)).toBe(4n);
    expect(stats.getBigUint64(abi.Stats.frames_decoded, true)).toBeGreaterThan(10n);
    expect(stats.getBigUint64(abi.Stats.frames_refused, true)).toBe(5n);
    expect(stats.getBigUint64(abi.Stats.chunks_run, true)).toBeGreaterThan(5n);
  });
});
