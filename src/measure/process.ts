/** What Linux says about a running process: processor time by thread, resident memory. */
import { readdir, readFile } from "node:fs/promises";

/** Time on a core, as the scheduler counts it in nanoseconds; a thread that waits costs nothing. */
export interface ProcessorTime {
  /** Of all threads that live. */
  readonly allMs: number;
  /** Of the thread that runs the event loop: the process's first. */
  readonly loopMs: number;
}

export async function processorTime(pid: number): Promise<ProcessorTime> {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(threads.map((thread) => threadMs(pid, thread)));
  return { allMs: times.reduce((sum, ms) => sum + ms, 0), loopMs: await threadMs(pid, String(pid)) };
}

/** The first field of schedstat. A thread that ended meanwhile counts as nothing. */
async function threadMs(pid: number, thread: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8").catch(() => "0");
  return Number(text.split(" ")[0]) / 1e6;
}

export function since(before: ProcessorTime, now: ProcessorTime): ProcessorTime {
  return { allMs: now.allMs - before.allMs, loopMs: now.loopMs - before.loopMs };
}

/** Resident memory; NaN for a process that has ended. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return 1024 * Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
}
