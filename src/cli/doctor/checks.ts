/** The checks of `tendon doctor` as functions: facts in, green or red lines out, each red one with what to do. */
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

/** Is this a machine that the native library was built for? */
export function machineChecks(machine: Machine): Check[] {
  const { platform, arch, cpu, cores, memoryBytes } = machine;
  const known = platform === "linux" && arch === "x64";
  return [
    {
      name: "platform",
      ok: known,
      found: `${platform} ${arch}${machine.kernel === "" ? "" : `, kernel ${machine.kernel}`}`,
      ...(known ? {} : { todo: "tendon runs on Linux on x86-64 (x64); use such a machine" }),
    },
    {
      name: "processor",
      ok: machine.avx2,
      found: `${cpu}, ${count(cores, "core")}, ${(memoryBytes / 2 ** 30).toFixed(1)} GiB, ${machine.avx2 ? "AVX2" : "no AVX2"}`,
      ...(machine.avx2
        ? {}
        : {
            todo: "a processor with AVX2 is needed (Intel since 2013, AMD since 2015); in a virtual machine, pass it through",
          }),
    },
    glibcCheck(machine.glibc),
    gpuCheck(machine),
  ];
}

/** True when version `found` (numbers and dots) is at least `wanted`. */
export function versionAtLeast(found: string, wanted: string): boolean {
  const [a, b] = [found, wanted].map((text) => text.split(".").map(Number));
  for (let index = 0; index < (b?.length ?? 0); index++) {
    const difference = (a?.[index] ?? 0) - (b?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function glibcCheck(glibc: string | undefined): Check {
  const ok = glibc !== undefined && versionAtLeast(glibc, GLIBC_MIN);
  return {
    name: "C library",
    ok,
    found: glibc === undefined ? "not glibc" : `glibc ${glibc}`,
    ...(ok
      ? {}
      : { todo: `glibc ${GLIBC_MIN} or newer is needed (Debian 10, Ubuntu 18.10, RHEL 8 or later; not Alpine)` }),
  };
}

/** A machine without a GPU is green; devices without their driver are. */
function gpuCheck({ gpus, gpuDriver }: Machine): Check {
  if (gpus.length === 0) return { name: "GPU", ok: true, found: "none; models run on the processor" };
  const found = `${gpus.join(", ")}, driver ${gpuDriver ?? "not loaded"}`;
  const ok = gpuDriver !== undefined;
  return { name: "GPU", ok, found, ...(ok ? {} : { todo: "load the NVIDIA kernel driver (nvidia-smi must work)" }) };
}

/** Where the native libraries come from at each start; `dir` is the reason when there is no folder. */
export function libraryCheck(source: "built" | "cache" | "memory", dir: string): Check {
  const found = {
    built: `built from the sources, in ${dir}`,
    cache: `unpacked in ${dir}`,
    memory: "memory files, unpacked again at each start",
  }[source];
  const todo = `${dir}; make it writable and later starts are faster`;
  return { name: "libraries", ok: true, found, ...(source === "memory" ? { todo } : {}) };
}

/** Never red: the service runs without locked pages, less steadily. */
export function lockCheck(lockedBytes: number, tensorBytes: number, lockableBytes: number): Check {
  const found = `${(lockedBytes / MIB).toFixed(1)} of ${(tensorBytes / MIB).toFixed(1)} MiB of tensor memory`;
  const limit = Number.isFinite(lockableBytes) ? `${(lockableBytes / MIB).toFixed(0)} MiB` : "unlimited";
  const todo = `the limit is ${limit}; raise it with ulimit -l or LimitMEMLOCK= for steadier times`;
  return { name: "page-locked", ok: true, found, ...(lockedBytes < tensorBytes ? { todo } : {}) };
}

/** One bundle that was verified, loaded and run once. */
export function bundleCheck(bundle: {
  readonly id: string;
  readonly reference: boolean;
  readonly device: string;
  readonly refused: readonly { device: string; reason: string }[];
}): Check {
  const weights = bundle.reference ? "verified, reference bundle (random weights)" : "verified";
  const refusals = bundle.refused.map(({ device, reason }) => `${device} refused: ${reason}`);
  return {
    name: bundle.id,
    ok: true,
    found: `${weights}, runs on ${bundle.device}`,
    ...(refusals.length === 0 ? {} : { todo: refusals.join("; ") }),
  };
}

function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? "" : "s"}`;
}

/** The lines as a person reads them; colours only for a terminal. */
export function checkLines(checks: readonly Check[], colour: boolean): string {
  const width = Math.max(...checks.map((check) => check.name.length));
  const paint = (code: number, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const lines = checks.flatMap((check) => {
    const mark = check.ok ? paint(32, "ok ") : paint(31, "red");
    const line = `${mark}  ${check.name.padEnd(width)}  ${check.found}`;
    return check.todo === undefined
      ? [line]
      : [line, `${" ".repeat(width + 7)}${check.ok ? "note" : "do"}: ${check.todo}`];
  });
  return `${lines.join("\n")}\n`;
}
