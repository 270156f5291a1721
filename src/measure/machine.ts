/** What this machine is, read from the kernel and the C library: for `doctor` and for the head of every measurement. */
import { readdir, readFile } from "node:fs/promises";
import { availableParallelism, cpus, totalmem } from "node:os";
import { join } from "node:path";
import { printable } from "../std/printable.ts";

export interface Machine {
  /** `process.platform` and `process.arch`. */
  readonly platform: string;
  readonly arch: string;
  readonly cpu: string;
  /** Cores that this process may use. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly avx2: boolean;
  /** Version of the GNU C library, for example `2.36`; undefined on another C library. */
  readonly glibc: string | undefined;
  readonly kernel: string;
  /** Model names of NVIDIA devices. */
  readonly gpus: readonly string[];
  /** Version of the NVIDIA kernel driver, if one is loaded. */
  readonly gpuDriver: string | undefined;
  /** Bytes that this process may lock in memory; Infinity without a limit. */
  readonly lockableBytes: number;
}

export async function readMachine(): Promise<Machine> {
  const [cpuinfo, limits, kernel, driver] = await Promise.all([
    readOr("/proc/cpuinfo"),
    readOr("/proc/self/limits"),
    readOr("/proc/sys/kernel/osrelease"),
    readOr("/proc/driver/nvidia/version"),
  ]);
  return {
    platform: process.platform,
    arch: process.arch,
    cpu: cpus()[0]?.model.trim() || "unknown",
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    avx2: /^flags\s*:.*\bavx2\b/m.test(cpuinfo),
    glibc: glibcVersion(),
    kernel: printable(kernel.trim()),
    gpus: await gpuNames("/proc/driver/nvidia/gpus"),
    gpuDriver: /Kernel Module(?:.*?)\s(\d+(?:\.\d+)+)/.exec(driver)?.[1],
    lockableBytes: lockable(limits),
  };
}

async function readOr(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    // Absent on machines without the device or the kernel feature; to every caller that is the same as an empty text.
    return "";
  }
}

function glibcVersion(): string | undefined {
  const report: unknown = process.report?.getReport();
  const header = typeof report === "object" && report !== null && "header" in report ? report.header : undefined;
  const version =
    typeof header === "object" && header !== null && "glibcVersionRuntime" in header
      ? header.glibcVersionRuntime
      : undefined;
  return typeof version === "string" && version !== "" ? version : undefined;
}

async function gpuNames(folder: string): Promise<string[]> {
  let buses: string[];
  try {
    buses = await readdir(folder);
  } catch {
    return [];
  }
  const texts = await Promise.all(buses.sort().map((bus) => readOr(join(folder, bus, "information"))));
  return texts.map((text) => /^Model:\s*(.+)$/m.exec(text)?.[1]?.trim() ?? "NVIDIA device");
}

function lockable(limits: string): number {
  const soft = /^Max locked memory\s+(\S+)/m.exec(limits)?.[1];
  return soft === undefined ? 0 : soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
