/** Does the store keep its promises on a disk that loses, tears and refuses what is written? See test/program/disk. */
import { Problem } from "../src/std/problem.ts";
import { crashRounds } from "../test/program/disk/crash.ts";
import { DISK_ABSENT } from "../test/program/disk/disk.ts";
import { failingRounds, MODES } from "../test/program/disk/failing.ts";
import { startingRounds } from "../test/program/disk/starting.ts";
import { smallFrames } from "../test/program/payers.ts";
import { counts, judged, type Proof } from "./proof.ts";

/** Every n-th operation of each kind is tested. After every `startStep`-th loss of power the service is started. */
const STEPS = {
  small: { crash: 200, startStep: 8, request: 40, upload: 0, start: 150, modes: MODES.slice(1, 2) },
  full: { crash: 1, startStep: 40, request: 1, upload: 6, start: 6, modes: MODES },
} as const;

export const diskFaults: Proof = {
  name: "disk-faults",
  question:
    "After a loss of power at each write, and on a disk that refuses each of them, is nothing answered lost, nothing charged twice, and does the next start work?",
  async run(size) {
    if (DISK_ABSENT !== undefined) return new Problem(DISK_ABSENT);
    const { modes, ...steps } = STEPS[size];
    const frames = await smallFrames();
    // The first promise that is not kept ends this with an error.
    const crashed = await crashRounds(frames, { step: steps.crash, startStep: steps.startStep }, size);
    const failing = await failingRounds(frames, { modes, step: steps.request, uploadStep: steps.upload });
    const starting = await startingRounds(frames, { modes, step: steps.start });
    const figures = counts([
      ["operations of the history", crashed.operations],
      ["losses of power, each with every promise kept", crashed.crashes],
      ["of them with the service started and every answer asked for again", crashed.starts],
      ["requests whose n-th operation failed", failing.faults],
      ["of all requests, those that were answered", failing.answered],
      ["those that were refused with a code of the contract", failing.refused],
      ["failed syncs, after which the service says that it is down and is started again", failing.restarts],
      ["starts whose n-th operation failed, each followed by one that works", starting.faults],
      ["of them ended with a message that names file and remedy", starting.ended],
    ]);
    return judged(figures);
  },
};
