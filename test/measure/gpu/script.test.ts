/** `bench/gpu.sh` is for hosts that no test has: here its commands are printed, and its logic runs on the CPU with small models. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { childEnvironment, testRequirement } from "../../../src/config/environment.ts";

const ROOT = join(import.meta.dir, "../../..");
const SCRIPT = join(ROOT, "bench/gpu.sh");
const SHELLCHECK = Bun.which("shellcheck");
const UNCHECKED = SHELLCHECK === null && testRequirement() === "none";

async function run(set: Readonly<Record<string, string>>, ...words: string[]) {
  const child = Bun.spawn([SCRIPT, ...words], { env: childEnvironment(set), stdout: "pipe", stderr: "pipe" });
  const [said, wrong, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { said, wrong, code };
}

/** A program that is called in place of tendon. */
async function played(lines: readonly string[]): Promise<{ folder: string; program: string }> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-gpu-played-"));
  const program = join(folder, "tendon");
  await writeFile(program, ["#!/bin/sh", ...lines, ""].join("\n"), { mode: 0o755 });
  return { folder, program };
}

let [out, work] = ["", ""];
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "tendon-gpu-"));
  [out, work] = [join(folder, "out"), join(folder, "work")];
});

describe("bench/gpu.sh", () => {
  test("a dry run prints the commands of every step, and runs none", async () => {
    const { said, code } = await run({}, "--dry-run", "--out", out, "--work", work);
    expect(code).toBe(0);
    for (const part of [
      "npm run setup",
      "setup gpu --yes",
      " doctor\n",
      /--test kernels -- gpu:\/.*kernels\.fatbin/,
      "bundle verify dist/models/rho-yam --device cuda:0 --gpu own_kernels=true\n",
      /bench gpu --device cuda:0 --models \S+pi0\.5-bf16 .*--gpu cuda_graph=true,own_kernels=true/,
      /compute-sanitizer --tool racecheck .*gpu:/,
      "bundle verify dist/models/rho-yam --device cuda:0\n",
      "bundle verify dist/models/rho-yam --device tensorrt:0\n",
      "--device tensorrt:0 --gpu precision=f16 --within 0.01",
      /--device tensorrt:0 --gpu precision=bf16 --within TOLERANCE\(\S+rho-yam-bf16\)/,
      /bundle build bench\/models\/pi0\.5 --compute bf16 --out \S+/,
      /bench gpu --device cuda:0 --models \S+pi0\.5-bf16 --chunks 200 --within 0\.2 --gpu cuda_graph=true/,
      /bundle verify \S+pi0\.5-bf16 --device cuda:0 --gpu cuda_graph=true --within 0\.2\n/,
      /bundle verify \S+pi0\.5-bf16 --device cuda:0 --gpu cuda_graph=true --replicas 2 --within 0\.2\n/,
      /bench\/gpu\/replicas\.ts \S+pi0\.5-bf16 cuda:0 200 0\.2\n/,
      /bench\/gpu\/lost\.ts \S+molmoact2-yam cuda:0\n/,
      /bundle import \S+smolvla\/checkpoint --robot \S+robot\.toml --golden \S+golden --id \S+ --out \S+ --compute bf16\n/,
      /bundle verify \S+smolvla-bf16 --device cuda:0 --within 0\.1\n/,
      /bench gpu --device cuda:0 --models \S+pi0\.5-f16 --chunks 200 --gpu/,
      /bench gpu --device cuda:0 --models \S+gr00t-n1\.7 --chunks 200 --json/,
      /largest difference of rows at most TOLERANCE\(\S+pi0\.5-bf16\)/,
      "socket p50 in ms, frames with it at most 20",
      "socket p99 in ms, frames with it at most 22",
      "socket p50 in ms, frames before at most 20",
      "socket p99 in ms, frames before at most 22",
      "batch 8 in ms at most 80",
      "allocations a chunk at most 0",
      "host work a chunk in ms at most 0.3",
      "bundle build bench/models/dreamzero-5b",
      /timeout .*--kill-after=5 2 .* serve --dev --port 0 /,
    ])
      expect(said).toMatch(part);
    expect(said).not.toMatch(/^(PASS|FAIL|SKIP)/m);
    expect(existsSync(join(out, "steps.tsv"))).toBe(false);
  });

  test("a step or an option that it does not know ends it before anything runs", async () => {
    for (const word of ["parities", "--devise"]) {
      const { said, wrong, code } = await run({}, word);
      expect([code, said]).toEqual([2, ""]);
      expect(wrong).toContain(word);
    }
  });

  test("steps go on after one that fails, and each is kept with machine, commit and date", async () => {
    const words = ["--small", "--chunks", "2", "--out", out, "--work", work];
    const steps = ["doctor", "parity", "imported", "bench-f16", "graph", "two-replicas", "lost", "stop", "gr00t"];
    const good = await run({}, "--device", "cpu", ...words, ...steps);
    expect([good.code, good.wrong]).toEqual([0, ""]);
    const verdicts = (said: string, step: string) =>
      said.match(new RegExp(`^\\w+ (?=${step} )`, "gm"))?.map((one) => one.trim());
    expect(verdicts(good.said, "parity")).toEqual(Array(6).fill("PASS"));
    expect(good.said).toMatch(/^PASS parity +rho-yam on cpu: rows differ by \d\.\de-\d$/m);
    expect(verdicts(good.said, "imported")).toEqual(Array(5).fill(["PASS", "PASS", "SKIP"]).flat());
    expect(good.said).toMatch(/^PASS imported +act in f16: pictures 0.0e\+0, .*, rows \d\.\de-\d$/m);
    // The report, then what is asked of the full size on a GPU alone.
    expect(verdicts(good.said, "bench-f16")).toEqual(["PASS", ...Array(8).fill("SKIP")]);
    expect(good.said).toMatch(
      /^SKIP two-replicas [\d.]+ and [\d.]+ chunks a second by one and two replicas, 0 of 4 models/m,
    );
    expect(good.said).toMatch(/^SKIP graph +cpu is no NVIDIA device$/m);
    expect(verdicts(good.said, "stop")).toEqual(["PASS"]);
    expect(existsSync(join(out, "pi0.5-yam-f16-cpu.json"))).toBe(true);
    const bad = await run({}, "--device", "cuda:0", ...words, "parity", "sanitizer", "bench-bf16");
    expect(bad.code).toBe(1);
    expect(verdicts(bad.said, "parity")).toEqual(Array(6).fill("FAIL"));
    expect(bad.said).toMatch(/^FAIL parity +rho-yam on cuda:0: .*cuda:0/m);
    expect(verdicts(bad.said, "bench-bf16")).toEqual(["FAIL"]);
    if (!Bun.which("compute-sanitizer")) expect(bad.said).toMatch(/^SKIP sanitizer .*: cuda-sanitizer-\S+ of NVIDIA/m);
    expect(bad.said).toMatch(/^0 passed, [78] failed, [01] skipped/m);
    const kept = (await readFile(join(out, "steps.tsv"), "utf8")).trimEnd().split("\n");
    for (const line of kept)
      expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:]+Z\t\w+\t.+ cores, GPU .+\t(cpu|cuda:0)\t[\w-]+\t(PASS|FAIL|SKIP)\t/);
    expect(kept.length).toBeGreaterThan(20);
  }, 240_000);

  test("a figure is judged by the report, and the host's part of a chunk where events told it", async () => {
    // A program that answers as one on such a host does, with a report that a test has made.
    const { folder, program } = await played([
      'file=report.json && [ -f "$(dirname "$0")/$file" ] || file=untimed.json',
      'case "$*" in *verify*) echo "as one graph, captured" ;; esac',
      'while [ $# -gt 0 ]; do [ "$1" = --json ] && cp "$(dirname "$0")/$file" "$2"; shift; done',
      "exit 0",
    ]);
    const report = join(folder, "report.json");
    const told = (...others: [part: string, batch: number, figure: string, value: number][]) => {
      const figures = [["model", 1, "p50_ms", 20] as const, ...others];
      return JSON.stringify({
        measurements: [{ figures: figures.map(([part, batch, figure, value]) => ({ part, batch, figure, value })) }],
      });
    };
    await writeFile(join(folder, "untimed.json"), told());
    const judged = async (what: string) => {
      const words = ["--device", "cuda:0", "--out", join(folder, "out"), "--work", join(folder, "work"), "bench-bf16"];
      const { said } = await run({ TENDON: program }, ...words);
      return said.match(new RegExp(`^.* ${what}.*$`, "gm"))?.map((line) => line.replace(/ +/g, " ")) ?? [];
    };
    const [skipped] = await judged("host work a chunk");
    expect(skipped).toMatch(/^SKIP bench-bf16 host work a chunk in ms: not measured, .*asked: at most 0\.3$/);
    await writeFile(report, told(["host", 1, "p50_ms", 0.21], ["host", 8, "p50_ms", 0.9]));
    expect(await judged("host work a chunk")).toEqual(["PASS bench-bf16 host work a chunk in ms is 0.21, at most 0.3"]);
    await writeFile(report, told(["host", 1, "p50_ms", 0.31]));
    expect(await judged("host work a chunk")).toEqual(["FAIL bench-bf16 host work a chunk in ms is 0.31, at most 0.3"]);
    // What is measured up to a wider bound is held to the bundle's own.
    await mkdir(join(folder, "work/pi0.5-bf16"), { recursive: true });
    await writeFile(join(folder, "work/pi0.5-bf16/manifest.json"), '{\n  "parity": { "tolerance": 0.05 }\n}\n');
    await writeFile(report, told(["parity", 1, "difference_max", 0.07]));
    const differs = "FAIL bench-bf16 largest difference of rows is 0.07, at most 0.05";
    expect(await judged("largest difference")).toEqual([differs]);
    // Decoding is in the time of frames that come with their observation.
    const [together, before] = ["socket frames with it", "socket frames before"] as const;
    await writeFile(
      report,
      told(
        [together, 1, "p50_ms", 21],
        [together, 1, "p99_ms", 22],
        [before, 1, "p50_ms", 19],
        [before, 1, "p99_ms", 22.5],
      ),
    );
    expect(await judged("socket p")).toEqual([
      "FAIL bench-bf16 socket p50 in ms, frames with it is 21, at most 20",
      "PASS bench-bf16 socket p99 in ms, frames with it is 22, at most 22",
      "PASS bench-bf16 socket p50 in ms, frames before is 19, at most 20",
      "FAIL bench-bf16 socket p99 in ms, frames before is 22.5, at most 22",
    ]);
  });

  test("f16 is held to what is asked of half precision, bf16 to the tolerance of the model's bf16 bundle", async () => {
    const { folder, program } = await played([
      'echo "$*" >>"$0.log"',
      'case "$*" in *rho-yam*--compute\\ bf16*) echo "no tolerance; build this model with no --compute" && exit 1 ;; esac',
      '[ "$2" = build ] || exit 0',
      'mkdir -p "$7" && printf \'{\\n  "parity": {\\n    "tolerance": 0.12\\n  }\\n}\\n\' >"$7/manifest.json"',
    ]);
    const work = join(folder, "work");
    await run({ TENDON: program }, "--device", "cuda:0", "--out", join(folder, "out"), "--work", work, "half");
    const log = (await readFile(`${program}.log`, "utf8")).split("\n");
    expect(log.filter((line) => line.includes("isaac"))).toEqual([
      `bundle build models/isaac-0.5-yam/ --compute f16 --out ${work}/isaac-0.5-yam-f16`,
      `bundle verify ${work}/isaac-0.5-yam-f16 --device cuda:0 --within 0.01`,
      "bundle verify dist/models/isaac-0.5-yam --device tensorrt:0 --gpu precision=f16 --within 0.01",
      `bundle build models/isaac-0.5-yam/ --compute bf16 --out ${work}/isaac-0.5-yam-bf16`,
      `bundle verify ${work}/isaac-0.5-yam-bf16 --device cuda:0`,
      "bundle verify dist/models/isaac-0.5-yam --device tensorrt:0 --gpu precision=bf16 --within 0.12",
    ]);
    // Without such a bundle there is no bound.
    expect(log.filter((line) => /rho.*bf16/.test(line))).toHaveLength(1);
    // A folder of libraries without TensorRT's provider.
    const bare = await played([
      '[ "$1" = doctor ] && echo "ok   tensorrt  not used: libonnxruntime_providers_tensorrt.so is not beside it"',
      'echo "$*" >>"$0.log"',
      'mkdir -p "$7"',
    ]);
    const words = ["--device", "cuda:0", "--out", join(folder, "out"), "--work", join(bare.folder, "work"), "half"];
    expect((await run({ TENDON: bare.program }, ...words)).said).toMatch(/^SKIP half +by TensorRT: there is none$/m);
    expect(await readFile(`${bare.program}.log`, "utf8")).not.toContain("tensorrt:0");
  });

  test.skipIf(UNCHECKED)(
    UNCHECKED ? "shellcheck: skipped, there is none: apt install shellcheck" : "shellcheck finds nothing",
    async () => {
      const parts = ["verdicts", "own", "imported", "carry"].map((part) => join(ROOT, `bench/gpu/${part}.sh`));
      const child = Bun.spawn([SHELLCHECK ?? "", "-x", SCRIPT, ...parts], { stdout: "pipe", cwd: ROOT });
      expect([await child.stdout.text(), await child.exited]).toEqual(["", 0]);
    },
  );
});
