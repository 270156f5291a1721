/** What the devices of this machine say, for `doctor`. */
import { Problem } from "../std/problem.ts";
import { lastError } from "./binding.ts";
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
