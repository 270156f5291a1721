/**
 * Does a large upload survive kill -9, in little memory? See test/program/runs-large.ts.
 *
 * The service has one small model (picasso of the reference bundles), so that what its memory holds are uploads.
 */
import { type LargePlan, largeUpload } from "../test/program/runs-large.ts";
import { counts, judged, MIB, type Proof, type Size } from "./proof.ts";

const PLANS: Readonly<Record<Size, LargePlan>> = {
  small: { mib: 20, kills: [1], flipped: [1] },
  full: { mib: 2048, kills: [40, 90], endKillMs: 400, flipped: [1, 2, 64, 127, 128] },
};
/** Asked for: 300 MB. */
const RESIDENT_MIB_MAX = 300e6 / MIB;

export const runsLarge: Proof = {
  name: "runs-large",
  question:
    "Does an upload of 2 GiB end byte for byte although the service is killed three times, with under 300 MB of memory?",
  async run(size) {
    const plan = PLANS[size];
    const done = await largeUpload(plan);
    const mib = (measure: string, bytes: number) => ({ measure, value: bytes / MIB, unit: "MiB" });
    return judged([
      mib("uploaded, read back byte for byte", plan.mib * MIB),
      ...counts([
        ["kills, the last one while the parts are put together", done.kills],
        ["parts", done.parts],
        ["parts sent", done.partsSent],
        ["parts with a wrong bit, all found, nothing of them kept", done.flipsFound],
      ]),
      mib("resident memory of the service before the upload", done.memoryBefore),
      { ...mib("resident memory, greatest of samples every 50 ms", done.memorySampled), limit: RESIDENT_MIB_MAX },
      { ...mib("resident memory, greatest by VmHWM, starts included", done.memoryGreatest), limit: RESIDENT_MIB_MAX },
    ]);
  },
};
