/** What Linux says about a process. */

/** A tick of the processor's accounts, in seconds. */
const TICK_SECONDS = 0.01;

/** Processor time that it has used, in seconds, of all its threads. */
export async function processorSeconds(pid: number): Promise<number> {
  const stat = await Bun.file(`/proc/${pid}/stat`).text();
  // The second field, the name, may have spaces; behind it user and system time are the 12th and 13th.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_SECONDS;
}
