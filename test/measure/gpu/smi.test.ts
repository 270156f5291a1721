/** What NVIDIA's tool says is read from a script that says it: the machine of a test has no card. */
import { expect, test } from "bun:test";
import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cudaNumbering } from "../../../src/config/environment.ts";
import { cardOfDevice } from "../../../src/measure/gpu/card-id.ts";
import { cardState, sampling } from "../../../src/measure/gpu/smi.ts";

async function tool(script: string): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), "tendon-smi-")), "smi");
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Two cards, in the order of the bus; CUDA without an order of its own begins with the second. */
const MIXED = ["0, GPU-aaaa-1, NVIDIA L4", "1, GPU-aaab-2, NVIDIA H200"];
const ALIKE = ["0, GPU-aaaa-1, NVIDIA L4", "1, GPU-aaab-2, NVIDIA L4"];

/** A tool that lists these cards. */
async function listing(lines: readonly string[]): Promise<string> {
  const said = lines.map((line) => `echo "${line}"`).join("; ");
  return await tool(`case "$1" in --query-gpu=index,uuid,name) ${said} ;; *) exit 1 ;; esac`);
}

/** `id` and `name` where the card is known. */
async function found(lines: readonly string[], device: string, env: Readonly<Record<string, string>> = {}) {
  return await cardOfDevice(device, { tool: await listing(lines), numbering: cudaNumbering(env) });
}

test("a device without a number of NVIDIA's is no card", async () => {
  for (const device of ["webgpu:0", "cpu", "auto", "cuda"]) expect(await found(MIXED, device)).toBeUndefined();
});

test("a device is the card that CUDA means by its number", async () => {
  const byBus = { CUDA_DEVICE_ORDER: "PCI_BUS_ID" };
  const [first, second] = [
    { id: "GPU-aaaa-1", name: "NVIDIA L4" },
    { id: "GPU-aaab-2", name: "NVIDIA H200" },
  ];
  expect(await found(MIXED, "cuda:1", byBus)).toMatchObject(second);
  expect(await found(MIXED, "tensorrt:0", byBus)).toMatchObject(first);
  // Those that are visible are numbered anew, in the order in which they are named.
  expect(await found(MIXED, "cuda:0", { ...byBus, CUDA_VISIBLE_DEVICES: "1,0" })).toMatchObject(second);
  expect(await found(MIXED, "cuda:1", { ...byBus, CUDA_VISIBLE_DEVICES: "1, 0" })).toMatchObject(first);
  // A UUID, or as much of it as only one card has, needs no order.
  expect(await found(MIXED, "cuda:0", { CUDA_VISIBLE_DEVICES: "GPU-aaab" })).toMatchObject(second);
  expect(await found(MIXED, "cuda:1", { CUDA_VISIBLE_DEVICES: "GPU-aaab-2,GPU-aaaa-1" })).toMatchObject(first);
  // One card alone has no order.
  expect(await found(MIXED.slice(0, 1), "cuda:0")).toMatchObject(first);
});

test("where it cannot be known the reason is said, and the name alone where all cards are alike", async () => {
  const order = expect.stringContaining("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  expect(await found(MIXED, "cuda:0")).toEqual({ id: undefined, name: undefined, why: order });
  expect(await found(ALIKE, "cuda:0")).toEqual({ id: undefined, name: "NVIDIA L4", why: order });
  expect(await found(MIXED, "cuda:0", { CUDA_VISIBLE_DEVICES: "1" })).toMatchObject({ id: undefined, why: order });
  for (const [visible, why] of [
    ["GPU-aaa", "not one card has the UUID GPU-aaa"],
    ["GPU-b", "not one card has the UUID GPU-b"],
    ["MIG-aaaa", "(MIG)"],
    ["", "no card at place 0"],
    ["-1,0", "no card at place 0"],
    ["7", "nvidia-smi has no card 7"],
  ] as const) {
    const one = await found(MIXED, "cuda:0", { CUDA_DEVICE_ORDER: "PCI_BUS_ID", CUDA_VISIBLE_DEVICES: visible });
    expect(one).toMatchObject({ id: undefined, why: expect.stringContaining(why) });
  }
  const none = { id: undefined, name: undefined, why: "no nvidia-smi tells of this device" };
  expect(await cardOfDevice("cuda:0", { tool: "/no/such/tool" })).toEqual(none);
  expect(await cardOfDevice("cuda:0", { tool: await tool('echo "No devices were found"; exit 6') })).toEqual(none);
});

test("the state of a card is read from one line", async () => {
  const path = await tool('[ "$1" = --id=GPU-1 ] && echo "NVIDIA H200, 580.159, 143771, 143000, 700.00, 1980"');
  expect(await cardState("GPU-1", path)).toEqual({
    name: "NVIDIA H200",
    driver: "580.159",
    memoryBytes: 143771 * 2 ** 20,
    memoryFreeBytes: 143000 * 2 ** 20,
    watts: 700,
    mhzMax: 1980,
  });
});

test("a machine without the tool, or a tool without the card, says nothing", async () => {
  expect(await cardState("0", "/no/such/tool")).toBeUndefined();
  expect(await cardState("0", await tool('echo "No devices were found"; exit 6'))).toBeUndefined();
  expect(sampling("0", "/no/such/tool")).toBeUndefined();
});

/** A tool that says these lines, and what ends when it has said the last: then all of them are in its pipe. */
async function saying(lines: readonly string[]): Promise<{ path: string; said(): Promise<void> }> {
  const path = await tool(`${lines.map((line) => `echo "${line}"`).join("\n")}\necho > "$0.said"\nexec sleep 60`);
  const said = async () => {
    while (!(await Bun.file(`${path}.said`).exists())) await Bun.sleep(1);
  };
  return { path, said };
}

test("samples are taken until they are stopped: the median of the power, the most of the memory", async () => {
  // Neither the mean nor the first, the middle or the last that was said; lines without a figure do not count.
  for (const [watts, median] of [
    [["900.0", "100.0", "[N/A]", "130.0", "110.0", "120.0"], 120],
    [["900.0", "150.5", "100.0"], 150.5],
  ] as const) {
    const { path, said } = await saying(watts.map((watt, at) => `${watt}, ${at === 1 ? 2000 : 100 * at}`));
    const running = sampling("0", path);
    await said();
    expect(await running?.stop()).toEqual({ watts: median, memoryBytes: 2000 * 2 ** 20 });
  }
});

test("a card that does not tell its power has none", async () => {
  const running = sampling("0", await tool('echo "[N/A], [N/A]"'));
  expect(await running?.stop()).toEqual({ watts: Number.NaN, memoryBytes: Number.NaN });
});
