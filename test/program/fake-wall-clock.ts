/** The wall clock of a program under test, moved by libfaketime; its monotonic clock stays as it is. */
import { existsSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testRequirement } from "../../src/config/environment.ts";
import { temporaryFolder } from "../store/temporary.ts";

const LIBRARY = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime"]
  .map((folder) => `${folder}/libfaketimeMT.so.1`)
  .find((path) => existsSync(path));

/** Whether tests with such a clock cannot run here. */
export const NO_FAKETIME = LIBRARY === undefined && testRequirement() === "none";

/** A clock that a test moves while programs run by it; it begins at the real time. */
export class FakeWallClock {
  private constructor(private readonly path: string) {}

  static async place(): Promise<AsyncDisposable & { readonly clock: FakeWallClock }> {
    const dir = await temporaryFolder();
    const clock = new FakeWallClock(join(dir.path, "time"));
    await clock.jump(0);
    return { clock, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() };
  }

  /** What a program must be told. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: LIBRARY ?? "libfaketime is not installed (Debian: apt-get install libfaketime); .ci/run installs it",
      FAKETIME_TIMESTAMP_FILE: this.path,
      FAKETIME_NO_CACHE: "1",
      // Time that passes is not changed, and files keep the times that they have.
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      NO_FAKE_STAT: "1",
    };
  }

  /** Sets the clock to that number of days from the real time. */
  async jump(days: number): Promise<void> {
    // In one step: a program reads it at any moment.
    await writeFile(`${this.path}.new`, `${days < 0 ? "-" : "+"}${Math.abs(days)}d\n`);
    await rename(`${this.path}.new`, this.path);
  }
}
