/** Where a measurement comes from: machine, commit, versions, date. Without these its figures cannot be compared. */
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { PREBUILT } from "../engine/library.ts";
import { systemClock } from "../std/clock.ts";
import { readMachine } from "./machine.ts";

export interface Origin {
  /** ISO 8601, UTC, whole seconds. */
  readonly date: string;
  /** Short hash, with `+` when tracked files differ from it; `executable` for the compiled one. */
  readonly commit: string;
  readonly versions: {
    readonly tendon: string;
    readonly bun: string;
    readonly onnxruntime: string;
    readonly libjpeg_turbo: string;
  };
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memory_gib: number; readonly gpu: string };
}

export async function origin(): Promise<Origin> {
  const machine = await readMachine();
  return {
    date: `${new Date(systemClock.unixMs()).toISOString().slice(0, 19)}Z`,
    commit: await commit(),
    versions: {
      tendon: version,
      bun: Bun.version,
      onnxruntime: PREBUILT.runtime.version,
      libjpeg_turbo: PREBUILT.jpeg.version,
    },
    machine: {
      cpu: machine.cpu,
      cores: machine.cores,
      memory_gib: Math.round(machine.memoryBytes / 2 ** 30),
      gpu: machine.gpus.join(", ") || "none",
    },
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
