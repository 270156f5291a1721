/** What the devices of this machine say, for `doctor`; and those that the models of an engine run on. */
import { assert } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import { lastError } from "./binding.ts";
import type { Channel } from "./channel.ts";
import type { DeviceFigures } from "./engine.ts";
import { locateLibraries, openLibrary } from "./library.ts";

/** The NVIDIA driver. `version` is the CUDA that it serves, for example `13.0`. */
export type Driver =
  | { readonly state: "absent"; readonly reason: string }
  | { readonly state: "old"; readonly version: string; readonly needed: string }
  | { readonly state: "no_device"; readonly version: string }
  | { readonly state: "failed"; readonly version: string; readonly reason: string }
  | { readonly state: "ready"; readonly version: string; readonly devices: readonly Gpu[] };

interface Gpu {
  readonly name: string;
  /** For example `sm_90`. */
  readonly arch: string;
  readonly bytes: number;
}

export interface Devices {
  readonly driver: Driver;
  /** The first device of each kind; `refused`: why a graph of one node does not run there. */
  readonly tried: readonly { readonly device: string; readonly refused: string | null }[];
}

/** Longer than what the library says. */
const TEXT_BYTES = 65_536;

/** Tries each kind of device but the CPU. Blocks this thread, on a GPU for seconds: not for a process that serves. */
export async function readDevices(): Promise<Devices | Problem> {
  const installed = await locateLibraries();
  if (installed instanceof Problem) return installed;
  const calls = await openLibrary();
  if (calls instanceof Problem) return calls;
  const [runtime, text] = [Buffer.from(installed.runtime), Buffer.alloc(TEXT_BYTES)];
  const length = calls.tendon_devices(runtime, runtime.length, text, text.length);
  if (length < 0) return new Problem(`the devices cannot be tried: ${lastError(calls)}`);
  if (length > text.length) return new Problem("the devices cannot be tried: what they say is too long");
  return JSON.parse(text.toString("utf8", 0, length));
}

/** Devices have short names; the reason of one that is lost may be long. */
const figures = Buffer.alloc(TEXT_BYTES);

/** Of each device that models of the engine were placed on. */
export function deviceFigures(channel: Channel): DeviceFigures[] {
  const { calls, engine } = channel;
  const length = channel.expect(calls.tendon_device_figures(engine, figures, figures.length), "device_figures");
  assert(length <= figures.length, "the figures of all devices fit");
  return JSON.parse(figures.toString("utf8", 0, length));
}

/** The replicas there end what they have; a problem says why not. */
export function drainDevice({ calls, engine }: Channel, device: string): Problem | undefined {
  const name = Buffer.from(device);
  if (calls.tendon_drain(engine, name, name.length) >= 0) return undefined;
  return new Problem(`${device} cannot be drained: ${lastError(calls)}`);
}
