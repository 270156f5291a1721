/**
 * pi0.5 as LeRobot and openpi publish it, imported: every layer's keys and values and every step's velocity against the publisher's own code.
 * Some cases lack cameras. The checkpoints and what was computed are written by test/vectors/publishers.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { type Stored, TensorFile, valuesOf } from "../../../src/bundle/import/safetensors.ts";
import type { Golden, Manifest } from "../../../src/bundle/manifest.ts";
import { present } from "../../../src/std/assert.ts";
import { Problem } from "../../../src/std/problem.ts";
import { emptyDir } from "../built.ts";
import { PUBLISHERS, type RobotWords, robotFile } from "./robots.ts";

interface Layout extends Omit<RobotWords, "cameras"> {
  /** All pictures of the policy in its order. */
  readonly views: readonly string[];
  /** The number of a picture in the golden values. */
  readonly place: (view: string, shown: readonly string[]) => number;
}

const LAYOUTS: Readonly<Record<string, Layout>> = {
  "pi05-lerobot": {
    views: ["top", "wrist", "empty_camera_0"],
    columns: ["waist", "shoulder", "elbow", "wrist_1", "wrist_2", "left_gripper", "right_gripper"],
    place: (view, shown) => shown.indexOf(view),
  },
  "pi05-openpi": {
    views: ["base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"],
    columns: Array.from({ length: 14 }, (_, at) => `joint_${at}`),
    isRelative: (at) => at % 7 !== 6,
    place: (view) => ["base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"].indexOf(view),
  },
};

const short = (key: string) => key.replace("observation.images.", "");

for (const [name, layout] of Object.entries(LAYOUTS)) {
  const folder = join(PUBLISHERS, name);
  const golden: Golden = JSON.parse(await readFile(join(folder, "golden/golden.json"), "utf8"));
  const values = TensorFile.open(join(folder, "golden/golden.safetensors"));
  if (values instanceof Problem) throw new Error(values.message);
  const stored = (key: string): Stored => present(values.tensors.get(key), key);

  describe(name, () => {
    test.each(golden.cases.map(({ frames }, number) => [number, frames] as const))(
      "case %d: cache and velocities are the publisher's",
      async (number, frames) => {
        const shown = Object.keys(frames)
          .filter((key) => frames[key] !== null)
          .map(short);
        const missing = layout.views.filter((view) => !shown.includes(view) && !view.startsWith("empty_camera"));
        const out = join(await emptyDir(), "bundle");
        const manifest = await importBundle(join(folder, "checkpoint"), out, {
          id: "lab/pi05:arm",
          robot: await robotFile({ ...layout, cameras: shown, missing }),
          precision: "f32",
          computeRows: async (_, { observations }) => observations,
          draw: async () => [new Uint8Array()],
        });
        if (manifest instanceof Problem) throw new Error(manifest.message);
        const prefill = await InferenceSession.create(join(out, "prefill.onnx"));
        const cache = await prefill.run(prefillFeeds(manifest, number, shown));
        const valid = (present(cache.prefix_mask, "mask").data as Uint8Array).reduce((sum, one) => sum + one, 0);
        let worst = 0;
        for (const [key, made] of Object.entries(cache).filter(([key]) => key !== "prefix_mask")) {
          const [, part, layer] = /^past_([kv])_(\d+)$/.exec(key) ?? [];
          const expected = valuesOf(stored(`${number}.past_${part}.${layer}`));
          const width = expected.length / valid;
          const rows = validRows(cache.prefix_mask?.data as Uint8Array, made.data as Float32Array, width);
          worst = Math.max(worst, difference(rows, expected));
        }
        expect(worst).toBeLessThan(1e-5);

        const denoise = await InferenceSession.create(join(out, "denoise.onnx"));
        let x = valuesOf(stored(`${number}.noise`));
        const { steps, times = Array.from({ length: steps + 1 }, (_, at) => 1 - at / steps) } = present(
          manifest.flow,
          "a flow",
        );
        const shape = [1, manifest.action.rows, manifest.action.width];
        for (let step = 0; step < steps; step += 1) {
          const [t, next] = [present(times[step], "a time"), present(times[step + 1], "a time")];
          const feeds = { ...cache, x_t: new Tensor("float32", x, shape), t: new Tensor("float32", [t], [1]) };
          const velocity = present((await denoise.run(feeds)).v_t, "velocity").data as Float32Array;
          expect(difference(velocity, valuesOf(stored(`${number}.velocity.${step}`)))).toBeLessThan(1e-5);
          x = x.map((value, at) => value + (next - t) * present(velocity[at], "a value"));
        }
      },
    );

    /** What prefill is given: the publisher's pictures and tokens. */
    function prefillFeeds(manifest: Manifest, number: number, shown: readonly string[]): Record<string, Tensor> {
      const { tokens_max: most } = present(manifest.prompt, "a prompt");
      const ids = integers(stored(`${number}.tokens`));
      const tokens = BigInt64Array.from({ length: most }, (_, at) => ids[at] ?? 0n);
      const mask = Uint8Array.from({ length: most }, (_, at) => (at < ids.length ? 1 : 0));
      const { width, height } = manifest.image;
      const shape = [1, 1, 3, height, width];
      const pictures = layout.views.flatMap((view): [string, Tensor][] => {
        const isShown = shown.includes(view);
        const pixels = isShown
          ? valuesOf(stored(`${number}.images.${layout.place(view, shown)}`))
          : new Float32Array(3 * height * width).fill(-1);
        return [
          [`image_${view}`, new Tensor("float32", pixels, shape)],
          [`mask_${view}`, new Tensor("bool", Uint8Array.of(isShown ? 1 : 0), [1])],
        ];
      });
      return {
        tokens: new Tensor("int64", tokens, [1, most]),
        token_mask: new Tensor("bool", mask, [1, most]),
        ...Object.fromEntries(pictures),
      };
    }
  });
}

function integers({ file, begin, bytes }: Stored): BigInt64Array {
  const whole = readFileSync(file.path);
  return new BigInt64Array(Uint8Array.from(whole.subarray(begin, begin + bytes)).buffer);
}

/** The rows of valid tokens of a cache [1, 1, tokens, width]. */
function validRows(mask: Uint8Array, values: Float32Array, width: number): Float32Array {
  const rows = [...mask.keys()].filter((at) => mask[at] !== 0);
  return Float32Array.from(rows.flatMap((at) => [...values.subarray(at * width, (at + 1) * width)]));
}

function difference(one: Float32Array, other: Float32Array): number {
  expect(one).toHaveLength(other.length);
  return one.reduce((worst, value, at) => Math.max(worst, Math.abs(value - present(other[at], "a value"))), 0);
}
