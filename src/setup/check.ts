/**
 * `npm test`: all checks, the fastest first. Ends with `N passed, M failed`.
 *
 * With TENDON_TEST_REQUIRE=all a skipped test is a failure. A check that fails does not stop the others.
 * `--program FILE` runs the tests of the whole program only, against that executable.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { childEnvironment, testRequirement } from "../config/environment.ts";

const ROOT = resolve(import.meta.dir, "../..");
const NATIVE = join(ROOT, "native");
/** The folder of what the checks write and leave, removed at their end: bundles alone are gigabytes. */
const TMPDIR = mkdtempSync(join(tmpdir(), "tendon-check-"));
// PostgreSQL does not run as root: its tests give their folders in here to another user.
chmodSync(TMPDIR, 0o755);

interface Check {
  readonly name: string;
  readonly command: readonly string[];
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** Passed, failed and skipped tests in the output; a command without tests counts as one. */
  readonly count?: (output: string) => Counts;
}

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

const tool = (name: string) => join(ROOT, "node_modules/.bin", name);

function bunTest(...paths: string[]): Check {
  return {
    name: "bun test",
    command: [process.execPath, "test", "--timeout", "60000", ...paths],
    // A machine with libraries for GPUs in its cache folder is tested like one without.
    env: { TENDON_ORT_DIR: "none" },
    count: (output) => {
      const number = (word: string) => Number(new RegExp(`^\\s*(\\d+) ${word}$`, "m").exec(output)?.[1] ?? 0);
      return { passed: number("pass"), failed: number("fail"), skipped: number("skip") };
    },
  };
}

const CHECKS: readonly Check[] = [
  { name: "types", command: [tool("tsc"), "--noEmit"] },
  // For the browser: with the types of pages, and none of Bun.
  { name: "types of the player", command: [tool("tsc"), "--noEmit", "-p", "src/runs/player"] },
  { name: "format and lint", command: [tool("biome"), "ci", "--colors=off", "--error-on-warnings", "."] },
  { name: "dead code", command: [tool("knip")] },
  { name: "rustfmt", command: ["cargo", "fmt", "--all", "--check"], cwd: NATIVE },
  {
    name: "clippy",
    command: ["cargo", "clippy", "--release", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
    cwd: NATIVE,
  },
  {
    name: "Rust tests",
    command: ["cargo", "test", "--release", "--locked", "--workspace"],
    cwd: NATIVE,
    count: (output) => sum(output, /^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored/gm),
  },
  {
    name: "native library of the tests",
    command: ["cargo", "build", "--release", "--locked", "-p", "tendon-rehearsal"],
    cwd: NATIVE,
  },
  { name: "fuzz targets in Rust", command: [process.execPath, "test/fuzz/build.ts"] },
  bunTest(),
];

function sum(output: string, pattern: RegExp): Counts {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [, passed, failed, skipped] of output.matchAll(pattern)) {
    counts.passed += Number(passed);
    counts.failed += Number(failed);
    counts.skipped += Number(skipped);
  }
  return counts;
}

/** Lines of a failed test that are repeated: its error and where it was thrown. */
const FAILURE_LINES = 40;

/** What `bun test` printed of each failed test, from the result before it to its own. */
function failures(output: string): string[] {
  const lines = output.split("\n");
  // Each is listed again at the end, without its error.
  const ends = lines.flatMap((line, at) => (line.startsWith("(fail) ") && lines.indexOf(line) === at ? [at] : []));
  return ends.map((end) => {
    const before = lines.findLastIndex((line, at) => at < end && /^(\((pass|fail|skip)\) |\S+\.test\.ts:$)/.test(line));
    return lines.slice(Math.max(before, end - FAILURE_LINES) + 1, end + 1).join("\n");
  });
}

/** Runs a check, showing its output as it comes. */
async function run({ name, command, cwd = ROOT, env = {}, count }: Check): Promise<Counts> {
  process.stdout.write(`\n── ${name}\n`);
  const child = Bun.spawn([...command], {
    cwd,
    env: childEnvironment({ TMPDIR, ...env }),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let output = "";
  const show = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const piece of stream) {
      const text = decoder.decode(piece, { stream: true });
      output += text;
      process.stdout.write(text);
    }
  };
  await Promise.all([show(child.stdout), show(child.stderr)]);
  const good = (await child.exited) === 0;
  const counts = count?.(output) ?? { passed: 0, failed: 0, skipped: 0 };
  // A command without tests counts as one pass; failing without a failed test, or running no test, counts as one failure.
  if (good && count === undefined) counts.passed = 1;
  if (counts.failed === 0 && (!good || counts.passed === 0)) counts.failed = 1;
  repeated.push(...failures(output));
  return counts;
}

const program = process.argv[2] === "--program" ? process.argv[3] : undefined;
const checks =
  program === undefined
    ? CHECKS
    : [
        {
          ...bunTest("test/program"),
          name: program,
          env: { TENDON_TEST_PROGRAM: resolve(program), TENDON_ORT_DIR: "none" },
        },
      ];

const total = { passed: 0, failed: 0, skipped: 0 };
const broken: string[] = [];
/** Printed again at the end: among thousands of lines a failed test is not found. */
const repeated: string[] = [];
for (const check of checks) {
  const counts = await run(check);
  total.passed += counts.passed;
  total.failed += counts.failed;
  total.skipped += counts.skipped;
  if (counts.failed > 0) broken.push(check.name);
}
rmSync(TMPDIR, { recursive: true, force: true });
if (total.skipped > 0 && testRequirement() === "all") {
  broken.push(`${total.skipped} skipped although TENDON_TEST_REQUIRE=all`);
  total.failed += total.skipped;
}
for (const failure of repeated) process.stdout.write(`\n── failed test\n${failure}\n── end of failed test\n`);
if (broken.length > 0) process.stdout.write(`\nfailed: ${broken.join(", ")}\n`);
process.stdout.write(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`);
process.exit(total.failed > 0 ? 1 : 0);
