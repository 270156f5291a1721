import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ECHO_WARNING, REFERENCE_WARNING } from "../../src/bundle/describe.ts";
import {
  bundleCheck,
  checkLines,
  kernelCheck,
  libraryCheck,
  lockCheck,
  machineChecks,
  versionAtLeast,
} from "../../src/cli/doctor/checks.ts";
import { providerCheck, providerChecks } from "../../src/cli/doctor/providers.ts";
import { folderCheck } from "../../src/cli/doctor/storage.ts";
import { childEnvironment } from "../../src/config/environment.ts";
import type { Model } from "../../src/engine/engine.ts";
import { type Machine, readMachine } from "../../src/measure/machine.ts";
import { providerConfig } from "../llm/stage.ts";
import { temporaryFolder } from "../store/temporary.ts";

const MODEL = "vendorB/molmoact2:yam";

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
  const usable = { path: "/d", state: "usable", mode: 0o700, freeBytes: 2 ** 33, diskBytes: 2 ** 36 } as const;
  expect(folderCheck(usable).ok).toBe(true);
  expect(folderCheck({ ...usable, state: "absent", mode: 0 }).ok).toBe(true);
  expect(folderCheck({ ...usable, mode: 0o755 })).toMatchObject({ ok: false, todo: "chmod 700 /d" });
  expect(folderCheck({ ...usable, freeBytes: 1000 }).ok).toBe(false);
  expect(folderCheck({ ...usable, state: "not writable" }).ok).toBe(false);
});

const ON_HOST = { placesOnDevice: 0, hostMemoryBecause: undefined };
const NO_SESSIONS = {
  ...{ flowReason: null, slots: 0 },
  sessionMemory: { ...ON_HOST, places: 0, slotBytes: 0, room: undefined },
};
const SESSIONS = {
  ...{ device: "cpu", devices: ["cpu"], refused: [], slots: 6, flowReason: null },
  sessionMemory: {
    ...{ ...ON_HOST, places: 4, slotBytes: 3 * 2 ** 19 },
    room: { of: "cgroup", free: 2 ** 30, reserve: 2 ** 28 },
  },
};

test("a model with memory says how many sessions it takes, of what size, and what was measured", () => {
  const told = (model: typeof SESSIONS) => bundleCheck({ id: "a/b", reference: false }, model).found;
  expect(told(SESSIONS)).toBe(
    "verified, runs on cpu, 4 sessions and 2 parked of 1.5 MiB at most; 1024.0 MiB free (cgroup), 256.0 MiB kept",
  );
  expect(told({ ...SESSIONS, slots: 4 })).toContain("4 sessions of 1.5 MiB");
});

test("why a device runs a flow step by step is told, and is not red", () => {
  const flowReason = "denoise.onnx cannot become one graph: it has no latent";
  const bundle = bundleCheck({ id: "a/b", reference: false }, { ...SESSIONS, device: "cuda:0", flowReason });
  expect(bundle).toMatchObject({ ok: true, todo: `flows run step by step: ${flowReason}` });
});

test("where the memory of sessions lies on a device it is said, and why where it does not", () => {
  const check = (changes: Partial<Model["sessionMemory"]>) =>
    bundleCheck(
      { id: "a/b", reference: false },
      { ...SESSIONS, sessionMemory: { ...SESSIONS.sessionMemory, ...changes } },
    );
  const there = check({ placesOnDevice: 4 });
  expect(there.found).toContain("4 sessions in the device's memory and 2 parked of 1.5 MiB");
  expect(there.todo).toBeUndefined();
  const { ok, todo } = check({ hostMemoryBecause: "no kernel" });
  expect([ok, todo]).toEqual([
    true,
    "the memory of its sessions lies on the host, from where each observation copies it: no kernel",
  ]);
});

test("random weights, refused providers, memory files and unlocked pages are told, and are not red", () => {
  const refused = [{ device: "cuda:0", reason: "no driver" }];
  const bundle = bundleCheck(
    { id: "a/b", reference: true },
    { device: "cpu", devices: ["cpu"], refused, ...NO_SESSIONS },
  );
  expect(bundle.found).toContain("random weights");
  expect(bundle.todo).toContain("cuda:0 refused: no driver");
  expect(bundle.todo).toContain(REFERENCE_WARNING);
  const echo = bundleCheck(
    { id: "a/b", reference: false },
    { device: "echo", devices: ["echo"], refused: [], ...NO_SESSIONS },
  );
  expect([echo.found, echo.todo]).toEqual(["verified, runs on echo", expect.stringContaining(ECHO_WARNING)]);
  expect(bundleCheck({ id: "a/b", reference: false }, SESSIONS).todo).toBeUndefined();
  const spread = { device: "cuda:1, cpu", devices: ["cuda:1", "cpu", "cuda:1"], refused: [], ...NO_SESSIONS };
  expect(bundleCheck({ id: "a/b", reference: false }, spread).found).toBe(
    "verified, runs on cuda:1, cpu: replica 0 on cuda:1, replica 1 on cpu, replica 2 on cuda:1",
  );
  expect(libraryCheck("memory", "/c").todo).toContain("/c");
  expect(libraryCheck("cache", "/c").todo).toBeUndefined();
  expect(kernelCheck(false)).toMatchObject({ ok: true, found: expect.stringContaining("none in this build") });
  expect(kernelCheck(true)).toMatchObject({ ok: true, found: expect.stringMatching(/^in this build; .*own_kernels/) });
  expect(lockCheck(1, 2, 8 * 2 ** 20).todo).toContain("8 MiB");
  expect(lockCheck(2, 2, 0).todo).toBeUndefined();
});

test("a provider that is away, refuses its key or is broken is red; one that only has no list of its models is not", () => {
  const config = providerConfig({ base_url: "https://p.example/v1", protocol: "chat", api_key_env: "P_KEY" });
  const look = (found: Parameters<typeof providerCheck>[2], its = config) => {
    const { ok, found: what, todo = "" } = providerCheck("id", its, found);
    return [ok, `${what}: ${todo}`];
  };
  const said = (words: string) => expect.stringContaining(words);
  const listing = (...names: string[]) => ({ status: 200, names });
  expect(look(listing("other", "scripted"))).toEqual([true, '"scripted" at p.example, chat: ']);
  expect(look(listing("a", "b", "c", "d", "e", "f"))).toEqual([true, said("it lists: a, b, c, d, e, …")]);
  expect(look(listing())).toEqual([true, said("it lists: nothing")]);
  expect(look({ status: 404, names: undefined })).toEqual([true, said("the path in base_url")]);
  expect(look({ status: 429, names: undefined })).toEqual([true, said("status 429")]);
  expect(look({ away: "ECONNREFUSED" })).toEqual([false, said("p.example is not reached: ECONNREFUSED: start")]);
  expect(look({ status: 401, names: undefined })).toEqual([false, said("refuses the key in P_KEY")]);
  const keyless = providerConfig({ base_url: "https://p.example/v1", protocol: "chat" });
  expect(look({ status: 401, names: undefined }, keyless)).toEqual([false, said("api_key_env")]);
  expect(look({ status: 503, names: undefined })).toEqual([false, said("still be loading")]);
  expect(look({ status: 308, names: undefined })).toEqual([false, said("put that address into base_url")]);
});

test("a provider of several ids is asked once, with its key, and what serve would refuse is red", async () => {
  const asked: (string | null)[] = [];
  await using provider = Bun.serve({
    port: 0,
    fetch: ({ url, headers }) => {
      asked.push(`${new URL(url).pathname} ${headers.get("authorization")}`);
      return Response.json({ data: [{ id: "scripted" }] });
    },
  });
  const base_url = `http://127.0.0.1:${provider.port}/v1/`;
  const config = providerConfig({ base_url, protocol: "chat", api_key_env: "P_KEY" });
  const dear = providerConfig({ base_url, protocol: "chat", cached_input_usd_per_mtok: "9.00" });
  const llm = new Map([
    ["llm-a-5.3:async", config],
    ["llm-a-5.3:superfast", config],
    ["llm-c-k3", config],
    ["llm-c-k3:superfast", dear],
  ]);
  const settings = { llm, providerKeys: new Map([["P_KEY", "sk-1"]]), configPath: "/c/tendon.toml" };
  const checks = await providerChecks(settings);
  expect(checks.map(({ ok }) => ok)).toEqual([true, true, false, false]);
  expect([checks[2]?.todo, checks[3]?.found]).toEqual([
    expect.stringContaining("did you mean"),
    expect.stringContaining("cached_input_usd_per_mtok"),
  ]);
  expect(asked).toEqual(["/v1/models Bearer sk-1"]);
  const [none] = await providerChecks({ ...settings, llm: new Map() });
  const printed = checkLines(none ? [none] : [], false).split("\n");
  expect([none?.ok, printed[1]]).toEqual([true, expect.stringContaining("/c/tendon.toml")]);
  expect(Bun.TOML.parse(printed.slice(2).join("\n"))).toHaveProperty("llm");
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
  await using home = await temporaryFolder();
  const { report, code } = await doctorIn(home.path);
  for (const name of ["libraries", "engine", MODEL, "page-locked", "data folder", "database"]) {
    expect([name, report.checks.find((check) => check.name === name)?.ok]).toEqual([name, true]);
  }
  expect(report.checks.map((check) => check.name)).toContain("platform");
  expect(report.checks.find((check) => check.name === MODEL)?.found).toContain("random weights");
  expect(code).toBe(report.ok ? 0 : 1);
}, 60_000);

test("the command uses the configured device and looks into the database", async () => {
  await using home = await temporaryFolder();
  await Bun.write(join(home.path, ".config/tendon/tendon.toml"), `[robot."${MODEL}"]\ndevice = "echo"\n`);
  const data = join(home.path, ".local/share/tendon");
  await mkdir(data, { recursive: true, mode: 0o700 });
  await Bun.write(join(data, "tendon.sqlite"), "this is no database at all".repeat(100));
  const { report, code } = await doctorIn(home.path);
  expect(report.checks.find((check) => check.name === MODEL)?.found).toContain("runs on echo");
  expect(report.checks.find((check) => check.name === "database")).toMatchObject({ ok: false });
  expect(code).toBe(1);
}, 60_000);

interface Report {
  ok: boolean;
  checks: { name: string; ok: boolean; found: string }[];
}

/** `tendon doctor --json` as somebody with this home runs it. */
async function doctorIn(home: string): Promise<{ report: Report; code: number }> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/main.ts"), "doctor", "--json"], {
    env: childEnvironment({ HOME: home, XDG_CONFIG_HOME: "", XDG_DATA_HOME: "", XDG_CACHE_HOME: join(home, ".cache") }),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [text, code] = await Promise.all([child.stdout.text(), child.exited]);
  return { report: JSON.parse(text) as Report, code };
}
