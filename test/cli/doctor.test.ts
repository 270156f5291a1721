import { expect, test } from "bun:test";
import { bundleCheck, checkLines, folderCheck, libraryCheck, lockCheck, machineChecks } from "../../src/cli/checks.ts";
import { type Machine, readMachine, versionAtLeast } from "../../src/cli/machine.ts";

const good: Machine = {
  platform: "linux",
  arch: "x64",
  cpu: "A Processor",
  cores: 2,
  memoryBytes: 8 * 2 ** 30,
  avx2: true,
  glibc: "2.36",
  kernel: "6.1.0",
  gpus: [],
  gpuDriver: undefined,
  lockableBytes: 8 * 2 ** 20,
};
const red = (machine: Machine): string[] => machineChecks(machine).flatMap((check) => (check.ok ? [] : [check.name]));

test("a good machine is green without a GPU and with one", () => {
  expect(red(good)).toEqual([]);
  expect(red({ ...good, gpus: ["NVIDIA H200"], gpuDriver: "570.1" })).toEqual([]);
});

test("what tendon was not built for is red, each with what to do", () => {
  expect(red({ ...good, arch: "arm64" })).toEqual(["platform"]);
  expect(red({ ...good, platform: "darwin", glibc: undefined })).toEqual(["platform", "C library"]);
  expect(red({ ...good, avx2: false })).toEqual(["processor"]);
  expect(red({ ...good, glibc: "2.27" })).toEqual(["C library"]);
  expect(red({ ...good, glibc: undefined })).toEqual(["C library"]);
  expect(red({ ...good, gpus: ["NVIDIA H200"] })).toEqual(["GPU"]);
  for (const check of machineChecks({ ...good, arch: "arm64", avx2: false, glibc: "2.17", gpus: ["x"] })) {
    expect(check.ok).toBe(false);
    expect(check.todo).toBeString();
  }
});

test("versions are compared by their numbers", () => {
  expect(versionAtLeast("2.28", "2.28")).toBe(true);
  expect(versionAtLeast("2.9", "2.28")).toBe(false);
  expect(versionAtLeast("3.0", "2.28")).toBe(true);
  expect(versionAtLeast("2.28.1", "2.28")).toBe(true);
});

test("the data folder must be private, writable and not full", () => {
  const usable = { path: "/d", state: "usable", mode: 0o700, freeBytes: 2 ** 33 } as const;
  expect(folderCheck(usable).ok).toBe(true);
  expect(folderCheck({ ...usable, state: "absent", mode: 0 }).ok).toBe(true);
  expect(folderCheck({ ...usable, mode: 0o755 })).toMatchObject({ ok: false, todo: "chmod 700 /d" });
  expect(folderCheck({ ...usable, freeBytes: 1000 }).ok).toBe(false);
  expect(folderCheck({ ...usable, state: "not writable" }).ok).toBe(false);
});

test("random weights, refused providers, memory files and unlocked pages are told, and are not red", () => {
  const refused = [{ device: "cuda:0", reason: "no driver" }];
  const bundle = bundleCheck({ id: "a/b", reference: true, device: "cpu", refused });
  expect(bundle.found).toContain("random weights");
  expect(bundle.todo).toContain("cuda:0 refused: no driver");
  expect(libraryCheck("memory", "/c").todo).toContain("/c");
  expect(libraryCheck("cache", "/c").todo).toBeUndefined();
  expect(lockCheck(1, 2, 8 * 2 ** 20).todo).toContain("8 MiB");
  expect(lockCheck(2, 2, 0).todo).toBeUndefined();
});

test("the printed lines are plain text unless a terminal wants colours", () => {
  const plain = checkLines(machineChecks({ ...good, avx2: false }), false);
  expect(plain).toMatch(/^ok {3}platform/m);
  expect(plain).toMatch(/^red {2}processor/m);
  expect(plain).toMatch(/^ +do: a processor with AVX2/m);
  expect(plain).not.toContain("\u001b");
  expect(checkLines(machineChecks(good), true)).toContain("\u001b[32m");
});

test("this machine can be read", async () => {
  const machine = await readMachine();
  expect(machine.cores).toBeGreaterThan(0);
  expect(machine.memoryBytes).toBeGreaterThan(0);
  expect(machine.kernel).not.toBe("");
});

test("the command probes this machine, loads the bundles and says so", async () => {
  const words = [process.execPath, "src/main.ts", "doctor", "--json", "--data", "/tmp/tendon-not-there"];
  const child = Bun.spawn(words, { stdout: "pipe", stderr: "pipe" });
  const [text, code] = await Promise.all([child.stdout.text(), child.exited]);
  const report = JSON.parse(text) as { ok: boolean; checks: { name: string; ok: boolean; found: string }[] };
  const names = report.checks.map((check) => check.name);
  for (const name of ["platform", "libraries", "engine", "vendorB/molmoact2:yam", "page-locked", "data folder"]) {
    expect(names).toContain(name);
  }
  expect(report.checks.find((check) => check.name === "vendorB/molmoact2:yam")?.found).toContain("random weights");
  expect(code).toBe(report.ok ? 0 : 1);
}, 60_000);
