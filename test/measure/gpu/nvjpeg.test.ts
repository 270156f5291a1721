/** The measurement of nvJPEG, which no test's machine has: its library and the driver are played by fake-nvjpeg.c. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { packageOf } from "../../../src/cli/setup/packages.ts";
import { childEnvironment, testRequirement } from "../../../src/config/environment.ts";
import { locateLibraries } from "../../../src/engine/library.ts";
import { ok } from "../../engine/opened.ts";
import { type TemporaryFolder, temporaryFolder } from "../../store/temporary.ts";

const ROOT = join(import.meta.dir, "../../..");
const FRAMES = ["420-frame.jpg", "444-mid.jpg"].map((name) => join(ROOT, "test/vectors/jpeg", name));
const lacking = ["cc", "python3"].find((program) => Bun.which(program) === null);
const absent = lacking !== undefined && testRequirement() === "none";

let [turbojpeg, folder]: [string, TemporaryFolder | undefined] = ["", undefined];
beforeAll(async () => {
  turbojpeg = ok(await locateLibraries()).jpeg;
  folder = await temporaryFolder();
});
afterAll(async () => {
  await folder?.[Symbol.asyncDispose]();
});

/** Its exit code, and the lines that it said. */
async function peer(env: Record<string, string>, ...words: string[]) {
  const script = join(ROOT, "bench/peers/nvjpeg.py");
  const child = Bun.spawn(["python3", script, "--turbojpeg", turbojpeg, "--rounds", "3", ...words, ...FRAMES], {
    env: childEnvironment({ TURBOJPEG: turbojpeg, ...env }),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, wrong, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect(wrong).toBe("");
  return { code, lines: said.trimEnd().split("\n") };
}

describe.skipIf(absent)(
  absent ? `nvJPEG's measurement: skipped, there is no ${lacking}` : "nvJPEG's measurement",
  () => {
    test("decodes batches of 1, 3, 8 and 24 frames by each way of the card, and tells how far their pixels are off", async () => {
      const path = folder?.path ?? "";
      const [driver, lib] = [join(path, "libcuda.so.1"), join(path, "nvidia/cu13/lib")];
      const source = join(import.meta.dir, "fake-nvjpeg.c");
      const made = Bun.spawnSync(["cc", "-shared", "-fPIC", source, "-ldl", "-o", driver], { stderr: "pipe" });
      expect(made.stderr.toString()).toBe("");
      // One library by both names: the stream that one makes is known to the other.
      await mkdir(lib, { recursive: true });
      await symlink(driver, join(lib, "libnvjpeg.so.13"));
      const json = join(path, "figures.json");
      const { code, lines } = await peer({ LD_LIBRARY_PATH: path }, "--library", path, "--json", json);
      expect(code).toBe(0);
      const figures = await Bun.file(json).json();
      expect(JSON.parse(lines.at(-2) ?? "")).toEqual(figures);
      const times = { p50_us: expect.any(Number), p99_us: expect.any(Number) };
      const ways = { "libjpeg-turbo": times, default: times, gpu: times };
      const refused = { engines: { refused: "nvjpegCreateEx: no such hardware" } };
      expect(figures).toMatchObject({ gpu: "fake", nvjpeg: "13.12.11" });
      expect(figures.batches).toEqual(
        Object.fromEntries([1, 3, 8, 24].map((batch) => [batch, { ...ways, ...refused }])),
      );
      // One value of each frame is 5 off.
      const values = figures.frames.reduce((sum: number, { width, height }: Size) => sum + 3 * width * height, 0);
      const off = { max: 5, mean: Math.round((1e4 * 5 * FRAMES.length) / values) / 1e4 };
      expect(figures.differs).toEqual({ default: off, gpu: off });
      expect(lines.at(-1)).toMatch(
        /^nvjpeg: us p50\/p99 of a batch of 1: \d+\/\d+ (default|gpu) \(CPU \d+\/\d+\), 3: /,
      );
    });

    test("says what is missing where it cannot measure, and whether it can be fetched", async () => {
      // Found before the driver of a machine that has one.
      const broken = join(folder?.path ?? "", "broken");
      await Bun.write(join(broken, "libcuda.so.1"), "");
      expect(await peer({ LD_LIBRARY_PATH: broken })).toEqual({
        code: 3,
        lines: [expect.stringMatching(/^no NVIDIA driver: .*libcuda\.so\.1/)],
      });
      const { code, lines } = await peer({ LD_LIBRARY_PATH: folder?.path ?? "" }, "--library", "/nonexistent");
      expect([code, lines.at(-1)]).toEqual([
        4,
        expect.stringContaining(` nvidia-nvjpeg==${packageOf("libnvjpeg.so.13")?.version},`),
      ]);
    });
  },
);

interface Size {
  readonly width: number;
  readonly height: number;
}
