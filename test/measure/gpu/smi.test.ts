/** What NVIDIA's tool says is read from a script that says it: the machine of a test has no card. */
import { expect, test } from "bun:test";
import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cardNumber, cardState, sampling } from "../../../src/measure/gpu/smi.ts";

async function tool(script: string): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), "tendon-smi-")), "smi");
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

test("only an NVIDIA device has a number there", () => {
  expect(["cuda:0", "tensorrt:3", "webgpu:0", "cpu", "auto"].map(cardNumber)).toEqual([
    0,
    3,
    undefined,
    undefined,
    undefined,
  ]);
});

test("the state of a card is read from one line", async () => {
  const path = await tool('[ "$1" = --id=1 ] && echo "NVIDIA H200, 580.159, 143771, 143000, 700.00, 1980"');
  expect(await cardState(1, path)).toEqual({
    name: "NVIDIA H200",
    driver: "580.159",
    memoryBytes: 143771 * 2 ** 20,
    memoryFreeBytes: 143000 * 2 ** 20,
    watts: 700,
    mhzMax: 1980,
  });
});

test("a machine without the tool, or a tool without the card, says nothing", async () => {
  expect(await cardState(0, "/no/such/tool")).toBeUndefined();
  expect(await cardState(0, await tool('echo "No devices were found"; exit 6'))).toBeUndefined();
  expect(sampling(0, "/no/such/tool")).toBeUndefined();
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
    const running = sampling(0, path);
    await said();
    expect(await running?.stop()).toEqual({ watts: median, memoryBytes: 2000 * 2 ** 20 });
  }
});

test("a card that does not tell its power has none", async () => {
  const running = sampling(0, await tool('echo "[N/A], [N/A]"'));
  expect(await running?.stop()).toEqual({ watts: Number.NaN, memoryBytes: Number.NaN });
});
