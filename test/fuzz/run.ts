/** One search of a target in TypeScript or in Rust, in a separate process, and several side by side. */
import { join } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
import { runNative } from "./native.ts";

export interface Run {
  readonly name: string;
  readonly seconds: number;
  readonly seed: number;
  /** Inputs that reach something new are written to the corpus. */
  readonly keep?: boolean;
}

export interface Report {
  readonly name: string;
  /** Inputs that were tried. */
  readonly runs: number;
  /** Inputs that reached something new. */
  readonly corpus: number;
  /** Files of which no line was reached. */
  readonly unseen: readonly string[];
  readonly failure?: { readonly input: string; readonly error: string };
}

/** A search in TypeScript. */
async function runScript({ name, seconds, seed, keep = false }: Run): Promise<Report> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "main.ts"), name, String(seconds), String(seed)], {
    env: childEnvironment({
      BUN_JSC_useControlFlowProfiler: "1",
      // In the test runner's own children nothing is a test.
      NODE_ENV: "production",
      ...(keep ? { TENDON_FUZZ_KEEP: "1" } : {}),
    }),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, problem] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  await child.exited;
  const line = said.trimEnd().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) return { name, runs: 0, corpus: 0, unseen: [], failure: { input: "", error: problem } };
  return JSON.parse(line);
}

/** Starts all, `atOnce` of them at a time; each report as it comes. */
export function runAll(
  searches: readonly { readonly run: Run; readonly native: boolean }[],
  atOnce: number,
): Promise<Report>[] {
  const begun: Promise<Report>[] = [];
  for (const [index, { run, native }] of searches.entries()) {
    // In as many rows as may run at once; each waits for the one before it in its row.
    const before = begun[index - atOnce];
    begun.push(Promise.resolve(before).then(() => (native ? runNative(run) : runScript(run))));
  }
  return begun;
}
