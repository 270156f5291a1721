/** `bench/gpu.sh` is for hosts that no test has: here its commands are printed, and its logic runs on the CPU with small models. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
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
      /compute-sanitizer --tool racecheck .*gpu:/,
      /peers\/nvjpeg\.py --turbojpeg \S+ --device 0 --json \S+nvjpeg-cuda-0\.json .*\.jpg/,
      /pip install .* nvidia-nvjpeg==13\.0\.\d+\.\d+\n/,
      /release\/decode_bench \S+libturbojpeg\.so\.0 .*\.jpg/,
      "bundle verify dist/models/rho-yam --device cuda:0\n",
      "bundle verify dist/models/rho-yam --device tensorrt:0\n",
      "--device tensorrt:0 --gpu precision=f16 --within 0.01",
      /bundle build bench\/models\/pi0\.5 --compute bf16 --out \S+/,
      /bench gpu --device cuda:0 --models \S+pi0\.5-bf16 --chunks 200 --gpu cuda_graph=true,user_stream=true/,
      "socket p50 in ms at most 20",
      "socket p99 in ms at most 22",
      "batch 8 in ms at most 80",
      "allocations a chunk at most 0",
      "host work a chunk in ms at most 0.3",
      "bundle build bench/models/dreamzero-5b",
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
    const good = await run(
      {},
      "--device",
      "cpu",
      ...words,
      "doctor",
      "nvjpeg",
      "parity",
      "bench-f16",
      "graph",
      "gr00t",
    );
    expect([good.code, good.wrong]).toEqual([0, ""]);
    const verdicts = (said: string, step: string) =>
      said.match(new RegExp(`^\\w+ (?=${step} )`, "gm"))?.map((one) => one.trim());
    expect(verdicts(good.said, "parity")).toEqual(Array(6).fill("PASS"));
    expect(good.said).toMatch(/^PASS parity +rho-yam on cpu: rows differ by \d\.\de-\d$/m);
    expect(good.said).toMatch(/^SKIP nvjpeg +cpu is no NVIDIA device$/m);
    // The report, then what is asked of the full size on a GPU alone.
    expect(verdicts(good.said, "bench-f16")).toEqual(["PASS", ...Array(5).fill("SKIP")]);
    expect(good.said).toMatch(/^SKIP graph +cpu is no NVIDIA device$/m);
    expect(existsSync(join(out, "pi0.5-yam-f16-cpu.html"))).toBe(true);
    const bad = await run({}, "--device", "cuda:0", ...words, "nvjpeg", "parity", "sanitizer", "bench-bf16");
    expect(bad.code).toBe(1);
    expect(verdicts(bad.said, "parity")).toEqual(Array(6).fill("FAIL"));
    expect(bad.said).toMatch(/^FAIL parity +rho-yam on cuda:0: .*cuda:0/m);
    expect(verdicts(bad.said, "bench-bf16")).toEqual(["FAIL"]);
    expect(bad.said).toMatch(/^SKIP nvjpeg +no NVIDIA driver: libcuda/m);
    expect(bad.said).toMatch(/^0 passed, [78] failed, [12] skipped/m);
    const kept = (await readFile(join(out, "steps.tsv"), "utf8")).trimEnd().split("\n");
    for (const line of kept)
      expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:]+Z\t\w+\t.+ cores, GPU .+\t(cpu|cuda:0)\t[\w-]+\t(PASS|FAIL|SKIP)\t/);
    expect(kept.length).toBeGreaterThan(20);
  }, 240_000);

  test("on a GPU the host's part of a chunk is judged where events told it, and skipped where none did", async () => {
    // A program that answers as one on such a host does, with a report that a test has made.
    const folder = await mkdtemp(join(tmpdir(), "tendon-gpu-played-"));
    const [program, report] = [join(folder, "tendon"), join(folder, "report.csv")];
    await writeFile(
      program,
      [
        "#!/bin/sh",
        'case "$*" in *bench*user_stream=true*) file=report.csv ;; *bench*) file=untimed.csv ;; esac',
        'case "$*" in *verify*user_stream=true*) [ -f "$(dirname "$0")/report.csv" ] || exit 1 ;; esac',
        'case "$*" in *verify*) echo "as one graph, captured" ;; esac',
        'while [ $# -gt 0 ]; do [ "$1" = --csv ] && cp "$(dirname "$0")/$file" "$2"; shift; done',
        "exit 0",
      ].join("\n"),
      { mode: 0o755 },
    );
    const lines = (host: string) =>
      `model,device,robots,part,batch,figure,value\na,cuda:0,1,model,1,p50_ms,20\n${host}`;
    await writeFile(join(folder, "untimed.csv"), lines(""));
    const judged = async () => {
      const words = ["--device", "cuda:0", "--out", join(folder, "out"), "--work", join(folder, "work"), "bench-bf16"];
      const { said } = await run({ TENDON: program }, ...words);
      return said.match(/^.* host work a chunk.*$/m)?.[0].replace(/ +/g, " ");
    };
    expect(await judged()).toMatch(/^SKIP bench-bf16 host work a chunk in ms: not measured, .*asked: at most 0\.3$/);
    await writeFile(report, lines("a,cuda:0,1,host,1,p50_ms,0.21\na,cuda:0,1,host,8,p50_ms,0.9\n"));
    expect(await judged()).toBe("PASS bench-bf16 host work a chunk in ms is 0.21, at most 0.3");
    await writeFile(report, lines("a,cuda:0,1,host,1,p50_ms,0.31\n"));
    expect(await judged()).toBe("FAIL bench-bf16 host work a chunk in ms is 0.31, at most 0.3");
  });

  test.skipIf(UNCHECKED)(
    UNCHECKED ? "shellcheck: skipped, there is none: apt install shellcheck" : "shellcheck finds nothing",
    async () => {
      const child = Bun.spawn([SHELLCHECK ?? "", SCRIPT], { stdout: "pipe" });
      expect([await child.stdout.text(), await child.exited]).toEqual(["", 0]);
    },
  );
});
