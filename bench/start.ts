/** How long does the executable take to its ready line, bundle loaded and warmed, with an empty and with a filled cache folder? */
import { copyFile, cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownProgram, startChild } from "../src/measure/child.ts";
import { median } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const EXECUTABLE = join(import.meta.dir, "../dist/tendon");
/** The bundle of SAMPLE_MODEL. */
const ONE_BUNDLE = join(import.meta.dir, "../dist/models/molmoact2-yam");
/** Asked for, milliseconds. */
const FIRST_MS = 2000;
const LATER_MS = 500;

export const start: Proof = {
  name: "start",
  question: "How long does the executable take to its ready line, at the first start and at later ones?",
  async run(size) {
    // The small size must run before anything is compiled: it starts the sources instead.
    const executable = size === "full" ? EXECUTABLE : undefined;
    if (executable !== undefined && !(await Bun.file(executable).exists())) {
      return new Problem("dist/tendon is missing; run: npm run build");
    }
    const rounds = size === "full" ? 5 : 1;
    const rows: Figure[] = [];
    // The limits were set for one model; with all models the later start is reported only.
    for (const [name, bundle, asked] of [
      ["one model", ONE_BUNDLE, { first: { limit: FIRST_MS }, later: { limit: LATER_MS } }],
      ["all that ship", undefined, { first: { limit: FIRST_MS }, later: {} }],
    ] as const) {
      const first: number[] = [];
      const later: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const pair = await firstAndLater(executable, bundle);
        if (pair instanceof Problem) return pair;
        first.push(pair[0]);
        later.push(pair[1]);
      }
      rows.push(
        { measure: `${name}: first start, median of ${rounds}`, value: median(first), unit: "ms", ...asked.first },
        { measure: `${name}: first start, slowest`, value: Math.max(...first), unit: "ms" },
        { measure: `${name}: later start, median of ${rounds}`, value: median(later), unit: "ms", ...asked.later },
        { measure: `${name}: later start, slowest`, value: Math.max(...later), unit: "ms" },
      );
    }
    const note =
      "Empty HOME each round; the file itself is in the page cache. The window ends when the ready line is read.\n";
    return judged(rows, { below: note });
  },
};

/** Milliseconds to ready with an empty home folder, then again with what the first start left there; with one bundle, or all. */
async function firstAndLater(
  executable: string | undefined,
  bundle: string | undefined,
): Promise<readonly [number, number] | Problem> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-start-"));
  try {
    // Alone in a folder, as for a user: it must find nothing of the checkout.
    const program = executable === undefined ? ownProgram() : [join(folder, "tendon")];
    if (executable !== undefined) await copyFile(executable, join(folder, "tendon"));
    const home = join(folder, "home");
    await mkdir(home);
    const modelsDir = bundle === undefined ? undefined : join(folder, "models");
    if (bundle !== undefined) await cp(bundle, join(folder, "models/one"), { recursive: true });
    const times: number[] = [];
    for (let time = 0; time < 2; time++) {
      const environment = { HOME: home, XDG_CACHE_HOME: join(home, ".cache") };
      const child = await startChild({ program, device: "cpu", modelsDir, environment });
      if (child instanceof Problem) return child;
      times.push(child.readyMs);
      await child.stop();
    }
    return [times[0] ?? Number.NaN, times[1] ?? Number.NaN];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
