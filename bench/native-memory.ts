/**
 * Does the native engine read or write memory that is not its own?
 *
 * Its Rust tests run under AddressSanitizer, and those of the modules that call no C and no AVX2 under Miri. Both need a nightly
 * toolchain, which no other part of tendon does; what is not installed is named and skipped, and the answer then covers less.
 *
 * AddressSanitizer cannot see into libonnxruntime.so.1 and libturbojpeg.so.0, which are prebuilt, and tests without a model run no
 * graph. Miri cannot run JPEG decode, AVX2 and ONNX Runtime at all.
 */
import { join } from "node:path";
import { childEnvironment } from "../src/config/environment.ts";
import { Problem } from "../src/std/problem.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const NATIVE = join(import.meta.dir, "../native");
const TARGET = "x86_64-unknown-linux-gnu";
/** Filters for the tests of the modules that are plain Rust. */
const MIRI_FILTERS = ["queue", "active_batch", "ticket", "status", "fault", "noise", "header", "resize::weights"];

interface Tool {
  readonly name: string;
  /** Succeeds where it is installed. */
  readonly probe: readonly string[];
  readonly tests: readonly string[];
  readonly env: Record<string, string>;
}

/** The package without the counting allocator of the workspace, because a sanitizer brings its own allocator. */
const ENGINE = ["--locked", "--package", "tendon-native", "--lib"];

/** Each tool has its own target folder: with a shared one every change of flags would build everything anew. */
const TOOLS: readonly Tool[] = [
  {
    name: "AddressSanitizer",
    probe: ["cargo", "+nightly", "--version"],
    tests: ["cargo", "+nightly", "test", ...ENGINE, "--target", TARGET, "--tests"],
    // In place of those of .cargo/config.toml.
    env: { RUSTFLAGS: "-Zsanitizer=address -C target-cpu=x86-64-v3", CARGO_TARGET_DIR: join(NATIVE, "target/asan") },
  },
  {
    name: "Miri",
    probe: ["cargo", "+nightly", "miri", "--version"],
    tests: ["cargo", "+nightly", "miri", "test", ...ENGINE, "--", ...MIRI_FILTERS],
    env: { MIRIFLAGS: "-Zmiri-disable-isolation", CARGO_TARGET_DIR: join(NATIVE, "target/miri") },
  },
];

export const nativeMemory: Proof = {
  name: "native-memory",
  question: "Does the native engine stay inside its own memory, under AddressSanitizer and under Miri?",
  async run(size) {
    const rows: Figure[] = [];
    let below = "";
    for (const { name, probe, tests, env } of TOOLS) {
      const installed = (await run(probe, {})).code === 0;
      rows.push({ measure: `${name} is installed`, value: Number(installed), unit: "1" });
      if (!installed) below += `${name} is not installed and was skipped: ${probe.join(" ")} fails.\n`;
      // The first build takes minutes.
      if (!installed || size === "small") continue;
      const { code, output } = await run(tests, env);
      if (code !== 0) return new Problem(`${name} found something:\n${output.slice(-8_000)}`);
      const passed = [...output.matchAll(/^test result: ok\. (\d+) passed/gm)].map(([, count]) => Number(count));
      const value = passed.reduce((sum, count) => sum + count, 0);
      rows.push({ measure: `tests under ${name}, without a finding`, value, unit: "1", least: 1 });
    }
    // Nothing is proved where nothing runs.
    if (size === "full") {
      const ran = rows.filter(({ least }) => least === 1).length;
      rows.push({ measure: "of these two, those that ran", value: ran, unit: "1", least: 1 });
    }
    return judged(rows, { below });
  },
};

async function run(words: readonly string[], env: Record<string, string>): Promise<{ code: number; output: string }> {
  const child = Bun.spawn([...words], {
    cwd: NATIVE,
    env: childEnvironment(env),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, output: stdout + stderr };
}
