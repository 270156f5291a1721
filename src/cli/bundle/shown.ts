/** Shows on standard error how far a weight file of gigabytes is written. */
import type { Progress as Written } from "../../bundle/weight-file.ts";
import { systemClock } from "../../std/clock.ts";
import { Progress } from "../runs/progress.ts";

export async function shown<T>(build: (written: Written) => Promise<T>): Promise<T> {
  const { stderr } = process;
  const progress = new Progress({
    clock: systemClock,
    write: (text) => stderr.write(text),
    columns: stderr.isTTY ? stderr.columns || 80 : undefined,
  });
  let before = 0;
  try {
    return await build((done, bytes) => {
      if (before === 0) progress.begun({ files: 1, bytes, skipped: [] });
      progress.moved(done - before);
      before = done;
    });
  } finally {
    progress.end();
  }
}
