/** What this machine is, read from the kernel and the C library: for `doctor` and for the head of every measurement. */
import { readdir, readFile } from "node:fs/promises";
import { availableParallelism, cpus, totalmem } from "node:os";
import { join } from "node:path";
import { textAt } from "../std/json.ts";
import { printable } from "../std/printable.ts";

export type Machine = Awaited<ReturnType<typeof readMachine>>;

export async function readMachine() {
  const [cpuinfo, limits, kernel, driver] = await Promise.all([
    readOr("/proc/cpuinfo"),
    readOr("/proc/self/limits"),
    readOr("/proc/sys/kernel/osrelease"),
    readOr("/proc/driver/nvidia/version"),
  ]);
  const { platform, arch } = process;
  return {
    platform,
    arch,
    cpu: cpus()[0]?.model.trim() || "unknown",
    /** Cores that this process may use. */
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    avx2: /^flags\s*:.*\bavx2\b/m.test(cpuinfo),
    /** Version of the GNU C library, for example `2.36`; undefined on another C library. */
    glibc: textAt(process.report?.getReport(), "header", "glibcVersionRuntime") || undefined,
    kernel: printable(kernel.trim()),
    /** Model names of NVIDIA devices. */
    gpus: await gpuNames("/proc/driver/nvidia/gpus"),
    /** Version of the NVIDIA kernel driver, if one is loaded. */
    gpuDriver: /Kernel Module(?:.*?)\s(\d+(?:\.\d+)+)/.exec(driver)?.[1],
    /** Bytes that this process may lock in memory; Infinity without a limit. */
    lockableBytes: lockable(limits),
  };
}

/** Empty for a file that is absent, as on machines without the device or the kernel feature. */
async function readOr(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}

async function gpuNames(folder: string): Promise<string[]> {
  const buses = await readdir(folder).catch(() => []);
  const texts = await Promise.all(buses.sort().map((bus) => readOr(join(folder, bus, "information"))));
  return texts.map((text) => /^Model:\s*(.+)$/m.exec(text)?.[1]?.trim() ?? "NVIDIA device");
}

function lockable(limits: string): number {
  const soft = /^Max locked memory\s+(\S+)/m.exec(limits)?.[1];
  return soft === undefined ? 0 : soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
