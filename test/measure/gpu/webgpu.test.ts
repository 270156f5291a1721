/** The suite on a device whose memory is not the host's, where batches do form: by its command, on software Vulkan. */
import { describe, expect, test } from "bun:test";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { childEnvironment } from "../../../src/config/environment.ts";
import { LAVAPIPE } from "../../engine/lavapipe.ts";
import { type Figure, figureIn } from "../origin.ts";

const ROOT = join(import.meta.dir, "../../..");

describe.skipIf(LAVAPIPE.absent)(LAVAPIPE.title, () => {
  test("bench gpu measures batches, and what is copied to the device and back", async () => {
    const out = join(await mkdtemp(join(tmpdir(), "tendon-bench-")), "gpu.json");
    const words = ["bench", "gpu", "--device", "webgpu:0", "--models", join(ROOT, "dist/models/isaac-0.5-yam")];
    const child = Bun.spawn(
      [process.execPath, join(ROOT, "src/main.ts"), ...words, "--chunks", "2", "--batch", "2", "--json", out],
      {
        env: childEnvironment({
          ...LAVAPIPE.environment,
          MESA_SHADER_CACHE_DIR: join(tmpdir(), "tendon-lavapipe-shaders"),
        }),
        stdout: "ignore",
        stderr: "pipe",
      },
    );
    const [said, code] = await Promise.all([child.stderr.text(), child.exited]);
    expect([code, code === 0 ? "" : said]).toEqual([0, ""]);
    const { measurements } = (await Bun.file(out).json()) as { measurements: { device: string; figures: Figure[] }[] };
    const value = figureIn(measurements[0]?.figures);
    expect(measurements[0]?.device).toBe("webgpu:0");
    for (const batch of [1, 2]) expect(value("prefill", "p50_ms", batch)).toBeGreaterThan(0);
    expect(value("copy", "to_device_bytes")).toBeGreaterThan(0);
    expect(value("load", "device_bytes")).toBeGreaterThan(0);
  }, 300_000);
});
