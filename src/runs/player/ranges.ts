/** Reads the log over HTTP by ranges; never more than was asked for. */
import { LogProblem } from "./log-lines.ts";
import type { ReadRange } from "./paged-file.ts";

const BUSY_MS = 1_000;

export function rangesOf(address: string): ReadRange {
  return async (start, end) => {
    const range = `bytes=${start}-${end - 1}`;
    const ask = () => fetch(address, { headers: { range } }).catch(() => undefined);
    let response = await ask();
    if (response?.status === 503) {
      // The storage is busy for a moment.
      await new Promise((over) => setTimeout(over, BUSY_MS));
      response = await ask();
    }
    if (response?.status === 404) throw new LogProblem("it is not there any more");
    if (response?.status !== 206) {
      await response?.body?.cancel();
      throw new LogProblem("a part of it could not be read; reload the page to try again");
    }
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length !== end - start) throw new LogProblem("it has another size than the run says");
    return bytes;
  };
}
