/** "Disk faults below the store": the small size of `npm run prove disk-faults`. */
import { beforeAll, describe, expect, test } from "bun:test";
import { crashRounds } from "./disk/crash.ts";
import { DISK_ABSENT, DISK_SKIPPED } from "./disk/disk.ts";
import { failingRounds, MODES } from "./disk/failing.ts";
import { startingRounds } from "./disk/starting.ts";
import { smallFrames } from "./payers.ts";

const title = DISK_SKIPPED ? `disk faults: ${DISK_ABSENT}` : "disk faults";

let frames: readonly Uint8Array[];
beforeAll(async () => {
  frames = await smallFrames();
});

describe.skipIf(DISK_SKIPPED)(title, () => {
  test("unsynced pages dropped, torn and mixed at a loss of power: nothing answered is lost, nothing is charged twice, the next start works", async () => {
    const { crashes, starts, answered } = await crashRounds(frames, { step: 40, startStep: 40 }, "small");
    expect([crashes > 40, starts > 1, answered]).toEqual([true, true, 10]);
  }, 120_000);

  test("EIO and ENOSPC at the n-th operation of a request: 503 with the contract's codes, never a hang; then it goes on, or says that it must be started again", async () => {
    const [, eio, full] = MODES;
    const modes = [eio, full].filter((mode) => mode !== undefined);
    const { faults, answered, refused } = await failingRounds(frames, { modes, step: 16, uploadStep: 0 });
    expect([faults > 10, answered > 0, refused > 0]).toEqual([true, true, true]);
  }, 120_000);

  test("EIO at the n-th operation of a start: it ends with 1 or 2 and names file and remedy, and the start after it works", async () => {
    const { faults, ended } = await startingRounds(frames, { modes: MODES.slice(1, 2), step: 120 });
    expect([faults > 1, ended > 1]).toEqual([true, true]);
  }, 120_000);
});
