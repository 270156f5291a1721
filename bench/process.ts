/** What Linux says about a running process: processor time by thread, resident memory. */
import { readdir, readFile } from "node:fs/promises";

/** Time on a core, as the scheduler counts it in nanoseconds; a thread that waits costs nothing. */
export interface ProcessorTime {
  /** Time of all threads that live. */
  readonly allMs: number;
  /** Time of the thread that runs the event loop: the process's first. */
  readonly loopMs: number;
  /** Time of the threads that decode and resize frames. */
  readonly decodeMs: number;
}

/** The native engine's names of them begin so (native/src/model/decode_pool.rs). */
const DECODE_THREADS = "tendon-jpeg-";

export async function processorTime(pid: number): Promise<ProcessorTime> {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(
    threads.map(async (thread) => ({ thread, name: await threadName(pid, thread), ms: await threadMs(pid, thread) })),
  );
  const sum = (some: typeof times) => some.reduce((sum, { ms }) => sum + ms, 0);
  return {
    allMs: sum(times),
    loopMs: sum(times.filter(({ thread }) => thread === String(pid))),
    decodeMs: sum(times.filter(({ name }) => name.startsWith(DECODE_THREADS))),
  };
}

async function threadName(pid: number, thread: string): Promise<string> {
  return await readFile(`/proc/${pid}/task/${thread}/comm`, "utf8").catch(() => "");
}

/** The first field of schedstat. A thread that ended meanwhile counts as nothing. */
async function threadMs(pid: number, thread: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8").catch(() => "0");
  return Number(text.split(" ")[0]) / 1e6;
}

export function since(before: ProcessorTime, now: ProcessorTime): ProcessorTime {
  return {
    allMs: now.allMs - before.allMs,
    loopMs: now.loopMs - before.loopMs,
    decodeMs: now.decodeMs - before.decodeMs,
  };
}

/** Resident memory; NaN for a process that has ended. */
export function residentBytes(pid: number): Promise<number> {
  return memoryOf(pid, "VmRSS");
}

/** Resident memory that is of no file; NaN for a process that has ended. */
export function ownBytes(pid: number): Promise<number> {
  return memoryOf(pid, "RssAnon");
}

async function memoryOf(pid: number, kind: "VmRSS" | "RssAnon"): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return 1024 * Number(new RegExp(`${kind}:\\s+(\\d+)`).exec(status)?.[1]);
}
