/** `tendon admin runs check` and `tendon admin runs adopt`. */
import { LIMITS } from "../../limits.ts";
import { type Checked, checkRuns, type WrongFile } from "../../runs/check.ts";
import { nextGeneration } from "../../runs/ownership.ts";
import { blobBackend } from "../../service/blobs.ts";
import { systemClock } from "../../std/clock.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { ServiceClock } from "../../std/seen-clock.ts";
import { lockFolder } from "../../store/sqlite/folder.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";
import { notRead, notWritten, now, STORE_FLAGS, withStore } from "./store.ts";

export const runsCheck: Command = {
  name: "admin runs check",
  summary: "Compare the records of all runs with the stored bytes, both ways; exit 1 if something is wrong.",
  flags: {
    deep: { about: "Also read every file and compare its SHA-256." },
    ...STORE_FLAGS,
  },
  async run(given) {
    return await withStore(given, "refuse", async (store, config) => {
      try {
        const blobs = await blobBackend(config);
        await blobs.check();
        const checked = await checkRuns({ store: store.runs, blobs, now: now(), deep: given.on("deep") });
        if (checked instanceof StoreDown) return notRead(checked);
        if (checked instanceof Problem) return checked;
        const ok = checked.totals.length + checked.wrong.length + checked.unnamed.length === 0;
        await answer(given, asJson(ok, checked), asText(ok, checked));
        return ok ? EXIT.done : EXIT.failed;
      } catch (error) {
        return new Problem(`the stored bytes cannot be read: ${printable((error as Error).message)}`);
      }
    });
  },
};

export const runsAdopt: Command = {
  name: "admin runs adopt",
  summary: "Let this database own the stored bytes of runs: a restored or cloned one, or where their marker is lost.",
  flags: STORE_FLAGS,
  async run(given) {
    return await withStore(given, "refuse", async (store, config) => {
      // The services of an object store see who changed its marker; a folder has one service, which must not run.
      const release = config.blobs === undefined ? lockFolder(config.dataDir) : undefined;
      if (release instanceof Problem) return release;
      try {
        const blobs = await blobBackend(config);
        await blobs.check();
        const deps = { store: store.runs, blobs, clock: new ServiceClock(systemClock) };
        const own = await nextGeneration(deps);
        const taken = "own" in own ? await nextGeneration(deps, true) : own;
        if (taken instanceof StoreDown) return notWritten(taken, "the bytes were adopted", "runs adopt");
        if (!("marker" in taken)) return new Problem("the bytes were not adopted: their marker changes; try again");
        const before = "own" in own ? own.found : taken.marker;
        await answer(given, { before: before || null, marker: taken.marker }, adoptedText(before, taken.marker));
        return EXIT.done;
      } catch (error) {
        return new Problem(`the stored bytes cannot be used: ${printable((error as Error).message)}`);
      } finally {
        release?.();
      }
    });
  },
};

function adoptedText(before: string, marker: string): string {
  if (before === marker) return `nothing to adopt: the stored bytes already belong to this database (${marker})`;
  const was = before === "" ? "had no marker" : `belonged to ${printable(before)}`;
  return [
    `the stored bytes ${was}, and now belong to this database (${marker}).`,
    "  Its service removes the bytes of files that are deleted, and after three days those that no record names.",
    "  A service of the database before removes nothing any more: stop it. What differs: tendon admin runs check",
  ].join("\n");
}

function asJson(ok: boolean, { files, bytes, blobs, young, read, totals, wrong, unnamed }: Checked) {
  return {
    ok,
    files,
    bytes,
    blobs,
    young,
    read,
    totals: totals.map(({ of, id, total, sum }) => ({ of, id, total: Number(total), sum: Number(sum) })),
    wrong: wrong.map(({ why, file: { accountId = null, robot = null, run = null, path, size, blobId } }) => {
      return { why, account: accountId, robot, run, path, size, blob: blobId };
    }),
    unnamed: unnamed.map(({ id, size, at, begun }) => ({ blob: id, size: begun ? null : size, at })),
  };
}

/** The most lines of each kind that are printed; `--json` has all. */
const SHOWN_MAX = 20;

function asText(ok: boolean, { files, bytes, blobs, young, read, totals, wrong, unnamed }: Checked): string {
  const lines = [
    ok ? "record and bytes agree:" : "record and bytes do NOT agree:",
    `  ${files} files of ${bytes} bytes in the record, ${blobs} blobs stored`,
    `  ${read === 0 ? "contents were not read (--deep does)" : `${read} files were read and their SHA-256 compared`}`,
    `  ${young} blobs without a record are younger than ${LIMITS.runLeftSeconds / 3600} hours and left out: they may yet get one`,
    ...shown(
      "totals that are not the sums",
      totals.map(({ of, id, total, sum }) => `${of} of ${id}: ${total}, the sum is ${sum}`),
    ),
    ...shown("files", wrong.map(wrongText)),
    ...shown(
      "blobs that no record names; the service removes a few by itself, and of many only says so",
      unnamed.map(({ id, size, begun }) => (begun ? `${id}, begun parts` : `${id}, ${size} bytes`)),
    ),
  ];
  return lines.join("\n");
}

const WHY = {
  missing: "its bytes are not there",
  size: "its bytes have another size",
  digest: "its bytes have another SHA-256",
  record: "its run is not in the record",
} as const;

function wrongText({ why, file: { accountId = "?", robot = "?", run = "?", path, blobId } }: WrongFile): string {
  return `${robot}/${run} ${printable(path)} of ${accountId} (${blobId}): ${WHY[why]}`;
}

function shown(what: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [];
  const more = lines.length > SHOWN_MAX ? [`    and ${lines.length - SHOWN_MAX} more`] : [];
  return [`  ${what}: ${lines.length}`, ...lines.slice(0, SHOWN_MAX).map((line) => `    ${line}`), ...more];
}
