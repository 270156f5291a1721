/** How far a file of gigabytes is read or written, on standard error. */
import type { Progress } from "../../bundle/weight-file.ts";
import { progressOnTerminal } from "../runs/progress.ts";

/** Runs `work`. Each new total that it names begins a new line. */
export async function shown<T>(isShown: boolean, work: (progress: Progress) => Promise<T>): Promise<T> {
  const progress = progressOnTerminal(isShown);
  let [before, total] = [0, 0];
  try {
    return await work((done, bytes) => {
      if (bytes !== total || done < before) {
        progress.begun({ files: 1, bytes, skipped: [] });
        [before, total] = [0, bytes];
      }
      progress.moved(done - before);
      before = done;
    });
  } finally {
    progress.end();
  }
}
