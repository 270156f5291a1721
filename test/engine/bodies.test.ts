import { JSCallback, type Pointer, ptr } from "bun:ffi";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { BodyResult, BodyRules, STATUS } from "../../src/engine/abi.ts";
import type { Calls } from "../../src/engine/binding.ts";
import { openLibrary } from "../../src/engine/library.ts";
import { ok } from "./opened.ts";

let calls: Calls;
let bodies: Pointer;
const done = new Map<number, (status: number) => void>();
const callback = new JSCallback((body: number, status: number) => done.get(body)?.(status), {
  args: ["u32", "i32"],
  returns: "void",
  threadsafe: true,
});

beforeAll(async () => {
  calls = ok(await openLibrary());
  const out = new BigUint64Array(1);
  expect(calls.tendon_bodies_open(callback.ptr as Pointer, ptr(out))).toBe(STATUS.ok);
  bodies = Number(out[0]) as Pointer;
});

afterAll(() => {
  expect(calls.tendon_bodies_close(bodies)).toBe(STATUS.ok);
  callback.close();
});

const rules = new Uint32Array(BodyRules.size / 4).fill(64);
rules[BodyRules.depth_max / 4] = 8;

function write(body: number, text: string): number {
  const bytes = Buffer.from(text);
  return calls.tendon_body_write(bodies, body, bytes, bytes.length);
}

/** The status of the body's one completion. */
function scanned(body: number): Promise<number> {
  const ended = new Promise<number>((settle) => done.set(body, settle));
  expect(calls.tendon_body_scan(bodies, body, 0, rules)).toBe(STATUS.ok);
  return ended;
}

test("a body is filled, scanned once, read and freed once, in that order", async () => {
  const found = new Uint8Array(BodyResult.size);
  const body = calls.tendon_body_make(bodies, 8);
  expect(body).toBeGreaterThan(0);
  expect(calls.tendon_body_result(bodies, body, found)).toBe(STATUS.misuse);
  expect([write(body, "[1,"), write(body, "2]"), write(body, "    ")]).toEqual([STATUS.ok, STATUS.ok, STATUS.misuse]);
  expect(await scanned(body)).toBe(STATUS.ok);
  expect([write(body, " "), calls.tendon_body_scan(bodies, body, 0, rules)]).toEqual([STATUS.misuse, STATUS.misuse]);
  expect(calls.tendon_body_result(bodies, body, found)).toBe(STATUS.ok);
  expect(new DataView(found.buffer).getUint32(BodyResult.skeleton_len, true)).toBe(5);
  expect(calls.tendon_body_free(bodies, body)).toBe(STATUS.ok);
  expect([calls.tendon_body_free(bodies, body), write(body, "")]).toEqual([STATUS.misuse, STATUS.misuse]);
  expect(calls.tendon_body_result(bodies, body, found)).toBe(STATUS.misuse);
});

test("a body that is not scanned can be freed; each has its own id", () => {
  const [one, two] = [calls.tendon_body_make(bodies, 1), calls.tendon_body_make(bodies, 1)];
  expect(one).not.toBe(two);
  for (const body of [one, two]) expect(calls.tendon_body_free(bodies, body)).toBe(STATUS.ok);
});

test("a completion says what is wrong", async () => {
  for (const [text, status] of [
    ["[1", STATUS.syntax],
    ["[".repeat(9), STATUS.depth],
    [`[${"1,".repeat(64)}1]`, STATUS.values],
  ] as const) {
    const body = calls.tendon_body_make(bodies, text.length);
    expect(write(body, text)).toBe(STATUS.ok);
    expect(await scanned(body)).toBe(status);
    expect(calls.tendon_body_free(bodies, body)).toBe(STATUS.ok);
  }
});

test("the number of bodies is bounded: the next one is refused until one is freed", () => {
  const made: number[] = [];
  let next = calls.tendon_body_make(bodies, 0);
  for (; next > 0; next = calls.tendon_body_make(bodies, 0)) made.push(next);
  expect([next, made.length]).toEqual([STATUS.busy, 8_192]);
  for (const body of made) expect(calls.tendon_body_free(bodies, body)).toBe(STATUS.ok);
});

test("null pointers and unknown bodies are misuse in every call", () => {
  const none = null as unknown as Pointer;
  const bytes = Buffer.alloc(BodyResult.size);
  expect([
    calls.tendon_bodies_open(callback.ptr as Pointer, none),
    calls.tendon_bodies_close(none),
    calls.tendon_body_make(none, 1),
    calls.tendon_body_write(none, 1, bytes, 1),
    calls.tendon_body_scan(none, 1, 0, rules),
    calls.tendon_body_scan(bodies, 1, 0, none),
    calls.tendon_body_scan(bodies, 1, 0, rules),
    calls.tendon_body_result(none, 1, bytes),
    calls.tendon_body_result(bodies, 1, none),
    calls.tendon_body_free(none, 1),
    calls.tendon_body_free(bodies, 1),
  ]).toEqual(Array(11).fill(STATUS.misuse));
});
