/** The origin of a measurement: machine, commit, versions, date. Without these its figures cannot be compared. */
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { PREBUILT } from "../engine/library.ts";
import { systemClock } from "../std/clock.ts";
import { readMachine } from "./machine.ts";
import { placedCores, placementText } from "./placement.ts";

export type Origin = Awaited<ReturnType<typeof origin>>;

export async function origin() {
  const { cpu, cores, memoryBytes, gpus } = await readMachine();
  const machine = {
    cpu,
    cores: placedCores() ?? cores,
    memory_gib: Math.round(memoryBytes / 2 ** 30),
    gpu: gpus.join(", ") || "none",
    placement: placementText(),
  };
  const { runtime, jpeg } = PREBUILT;
  return {
    /** ISO 8601, UTC, whole seconds. */
    date: `${new Date(systemClock.unixMs()).toISOString().slice(0, 19)}Z`,
    /** Short hash, with `+` when tracked files differ from it; `executable` for the compiled one. */
    commit: await commit(),
    versions: { tendon: version, bun: Bun.version, onnxruntime: runtime.version, libjpeg_turbo: jpeg.version },
    machine,
  };
}

async function commit(): Promise<string> {
  if (import.meta.path.startsWith("/$bunfs/")) return "executable";
  const hash = await git("rev-parse", "--short", "HEAD");
  const changed = await git("status", "--porcelain", "--untracked-files=no");
  return hash === "" ? "unknown" : `${hash}${changed === "" ? "" : "+"}`;
}

/** Standard output of a git command in the source folder; empty without git or outside a checkout. */
async function git(...words: string[]): Promise<string> {
  try {
    const child = Bun.spawn(["git", "-C", join(import.meta.dir, "../.."), ...words], { stderr: "ignore" });
    return (await child.stdout.text()).trim();
  } catch {
    return "";
  }
}

/** The versions on one line. */
export function versionsText({ versions }: Origin): string {
  const { tendon, bun, onnxruntime, libjpeg_turbo } = versions;
  return `tendon ${tendon}, Bun ${bun}, ONNX Runtime ${onnxruntime}, libjpeg-turbo ${libjpeg_turbo}`;
}
