/** The checks of `tendon doctor` as functions: facts in, green or red lines out, each red one with what to do. */
import { armWarning, hostMemoryNote } from "../../bundle/describe.ts";
import type { Manifest } from "../../bundle/manifest.ts";
import { deviceText } from "../../config/devices.ts";
import type { Model } from "../../engine/engine.ts";
import type { Machine } from "../../measure/machine.ts";

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly found: string;
  /** What to do if red; on a green line, what could be better. */
  readonly todo?: string;
}

const GLIBC_MIN = "2.28";
const MIB = 2 ** 20;

/** `todo` is told only on a red line. */
function check(name: string, ok: boolean, found: string, todo: string): Check {
  return ok ? { name, ok, found } : { name, ok, found, todo };
}

/** A green line; with a note where something could be better. */
export function green(name: string, found: string, note?: string): Check {
  return { name, ok: true, found, ...(note === undefined ? {} : { todo: note }) };
}

/** A problem's message says what to do after its first semicolon, if it has one. */
export function red(name: string, message: string): Check {
  const cut = message.indexOf("; ");
  if (cut < 0) return { name, ok: false, found: message, todo: "correct this and run doctor again" };
  return { name, ok: false, found: message.slice(0, cut), todo: message.slice(cut + 2) };
}

/** Is this a machine that the native library was built for? */
export function machineChecks(machine: Machine): Check[] {
  const { platform, arch, kernel, cpu, cores, memoryBytes, avx2, glibc } = machine;
  const processor = `${cpu}, ${cores} core${cores === 1 ? "" : "s"}, ${(memoryBytes / 2 ** 30).toFixed(1)} GiB`;
  return [
    check(
      "platform",
      platform === "linux" && arch === "x64",
      `${platform} ${arch}${kernel === "" ? "" : `, kernel ${kernel}`}`,
      "tendon runs on Linux on x86-64 (x64); use such a machine",
    ),
    check(
      "processor",
      avx2,
      `${processor}, ${avx2 ? "AVX2" : "no AVX2"}`,
      "a processor with AVX2 is needed (Intel since 2013, AMD since 2015); in a virtual machine, pass it through",
    ),
    check(
      "C library",
      glibc !== undefined && versionAtLeast(glibc, GLIBC_MIN),
      glibc === undefined ? "not glibc" : `glibc ${glibc}`,
      `glibc ${GLIBC_MIN} or newer is needed (Debian 10, Ubuntu 18.10, RHEL 8 or later; not Alpine)`,
    ),
    gpuCheck(machine),
  ];
}

/** True when version `found` (numbers and dots) is at least `wanted`. */
export function versionAtLeast(found: string, wanted: string): boolean {
  return found.localeCompare(wanted, "en", { numeric: true }) >= 0;
}

/** A machine without a GPU is green; devices without their driver are not. */
function gpuCheck({ gpus, gpuDriver }: Machine): Check {
  if (gpus.length === 0) return green("GPU", "none; models run on the processor");
  const found = `${gpus.join(", ")}, driver ${gpuDriver ?? "not loaded"}`;
  return check("GPU", gpuDriver !== undefined, found, "load the NVIDIA kernel driver (nvidia-smi must work)");
}

/** The place from which the native libraries are loaded at each start; `dir` is the reason when there is no folder. */
export function libraryCheck(source: "built" | "cache" | "memory", dir: string): Check {
  const found = {
    built: `built from the sources, in ${dir}`,
    cache: `unpacked in ${dir}`,
    memory: "memory files, unpacked again at each start",
  }[source];
  return green(
    "libraries",
    found,
    source === "memory" ? `${dir}; make it writable and later starts are faster` : undefined,
  );
}

/** Never red: models run without them, and a build without the CUDA compiler has none. */
export function kernelCheck(built: boolean): Check {
  const found = built ? "in this build; launched where own_kernels asks for it" : "none in this build";
  return green("GPU kernels", `${found}; models do not need them`);
}

/** Never red: the service runs without locked pages, less steadily. */
export function lockCheck(lockedBytes: number, tensorBytes: number, lockableBytes: number): Check {
  const found = `${(lockedBytes / MIB).toFixed(1)} of ${(tensorBytes / MIB).toFixed(1)} MiB of tensor memory`;
  const limit = Number.isFinite(lockableBytes) ? `${(lockableBytes / MIB).toFixed(0)} MiB` : "unlimited";
  const note = `the limit is ${limit}; raise it with ulimit -l or LimitMEMLOCK= for steadier times`;
  return green("page-locked", found, lockedBytes < tensorBytes ? note : undefined);
}

/** One bundle that was verified, loaded and computed once. `told`: what other lines say of the devices already. */
export function bundleCheck(
  manifest: Pick<Manifest, "id" | "reference">,
  model: Pick<Model, "device" | "devices" | "refused" | "slots" | "sessionMemory" | "flowReason" | "driverDevice">,
  told: readonly { readonly device: string; readonly refused: string | null }[] = [],
): Check {
  const { device } = model;
  const several = new Set(model.devices).size > 1;
  const place = several ? `${device}: ${deviceText(model.devices)}` : device;
  const weights = manifest.reference ? "verified, reference bundle (random weights)" : "verified";
  const isTold = (device: string, reason: string) =>
    told.some((one) => one.device === device && one.refused === reason);
  const own = model.refused.filter(({ device, reason }) => !isTold(device, reason));
  const notes = own.map((one) => `${one.device} refused: ${one.reason}`);
  if (model.flowReason !== null) notes.push(`flows run step by step: ${model.flowReason}`);
  const { registrationReason, timesReason, kernelsReason } = model.driverDevice ?? {};
  if (registrationReason !== undefined)
    notes.push(`what it copies goes through a buffer of the driver: ${registrationReason}`);
  if (timesReason !== undefined) notes.push(`the device times no inference: ${timesReason}`);
  if (kernelsReason !== undefined) notes.push(`own_kernels is set, but no kernel of tendon's runs: ${kernelsReason}`);
  const { hostMemoryBecause } = model.sessionMemory;
  if (hostMemoryBecause !== undefined) notes.push(hostMemoryNote(hostMemoryBecause));
  const warning = armWarning(manifest, device);
  if (warning !== undefined) notes.push(`${warning} 'serve' without --dev needs allow_reference = true for it`);
  return green(manifest.id, `${weights}, runs on ${place}${seatsOf(model)}`, notes.join("; ") || undefined);
}

/** How many sessions a model with memory takes, and what that was measured from. */
function seatsOf({ slots, sessionMemory }: Pick<Model, "slots" | "sessionMemory">) {
  if (slots === 0) return "";
  const { places, placesOnDevice, slotBytes, room } = sessionMemory;
  const size = (bytes: number) => `${(bytes / MIB).toFixed(1)} MiB`;
  const parked = slots > places ? ` and ${slots - places} parked` : "";
  const measured = room === undefined ? "" : `; ${size(room.free)} free (${room.of}), ${size(room.reserve)} kept`;
  const some = placesOnDevice < places ? ` (${placesOnDevice})` : "";
  const there = placesOnDevice === 0 ? "" : ` in the device's memory${some}`;
  return `, ${places} sessions${there}${parked} of ${size(slotBytes)} at most${measured}`;
}

/** The lines as a person reads them; colours only for a terminal. */
export function checkLines(checks: readonly Check[], colour: boolean): string {
  const width = Math.max(...checks.map((check) => check.name.length));
  const paint = (code: number, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const lines = checks.flatMap((check) => {
    const mark = check.ok ? paint(32, "ok ") : paint(31, "red");
    const line = `${mark}  ${check.name.padEnd(width)}  ${check.found}`;
    if (check.todo === undefined) return [line];
    const [first = "", ...more] = check.todo.split("\n");
    const indent = " ".repeat(width + 7);
    return [line, `${indent}${check.ok ? "note" : "do"}: ${first}`, ...more.map((text) => `${indent}  ${text}`)];
  });
  return `${lines.join("\n")}\n`;
}
