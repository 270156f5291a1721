/** The call behind `doctor` that tries the devices: its answer to right and wrong use. */
import { expect, test } from "bun:test";
import { STATUS } from "../../src/engine/abi.ts";
import { bindLibrary, lastError } from "../../src/engine/binding.ts";
import { readDevices } from "../../src/engine/devices.ts";
import { locateLibraries } from "../../src/engine/library.ts";
import { ok } from "./opened.ts";

const installed = ok(await locateLibraries());
const calls = ok(bindLibrary(installed.library));
const runtime = Buffer.from(installed.runtime);

test("a buffer that is too short is left alone, and the length that is needed comes back", () => {
  const short = Buffer.alloc(8, 7);
  const length = calls.tendon_devices(runtime, runtime.length, short, short.length);
  expect(length).toBeGreaterThan(short.length);
  expect(short.every((byte) => byte === 7)).toBe(true);
  const whole = Buffer.alloc(length);
  expect(calls.tendon_devices(runtime, runtime.length, whole, whole.length)).toBe(length);
  expect(JSON.parse(whole.toString())).toMatchObject({ tried: [{}, {}, {}] });
});

test("a path that is null is misuse", () => {
  expect([calls.tendon_devices(null, 4, null, 0), lastError(calls)]).toEqual([STATUS.misuse, "a pointer is null"]);
});

test("the reason of each device is one sentence, without the line of its source and line breaks", async () => {
  const { tried, driver } = ok(await readDevices());
  for (const { refused } of tried) expect(refused ?? "").not.toMatch(/onnxruntime_src|ONNXRuntimeError|\n/);
  // What a machine without a driver says names the library.
  if (driver.state === "absent") expect(driver.reason).toContain("libcuda.so.1");
});
