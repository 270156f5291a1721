/** Inputs that a manifest cannot mean are refused with path, found and expected; a role that nobody knows with the nearest. */
import { beforeAll, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { contradiction } from "../../src/bundle/consistency.ts";
import { INPUT_ROLES, Manifest } from "../../src/bundle/manifest.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf } from "./built.ts";
import { edited } from "./damaged.ts";
import { variant, variantNames } from "./variants.ts";

const manifests = new Map<string, Manifest>();
beforeAll(async () => {
  for (const name of await variantNames()) manifests.set(name, (await variant(name)).manifest);
  manifests.set("pixels", (await bundleOf("molmoact2-yam", "f32", { compute: "f16" })).manifest);
  manifests.set("world", (await bundleOf("dreamzero-astra-yam")).manifest);
});

type Graphs = Manifest["graphs"];
type Input = Graphs["prefill"]["inputs"][number];
type Change = (input: (graph: keyof Graphs, name: string) => Input, manifest: Manifest) => unknown;

function after(name: string, change: Change): string {
  const manifest = structuredClone(present(manifests.get(name), name));
  const input = (graph: keyof Graphs, port: string) =>
    present(
      manifest.graphs[graph]?.inputs.find((one) => one.name === port),
      port,
    );
  change(input, manifest);
  // What the schema does not know would have been refused before.
  expect([...Value.Errors(Manifest, manifest)]).toEqual([]);
  return contradiction(manifest) ?? "nothing";
}

test("a role that nobody knows is told with the nearest one and all that there are", async () => {
  const message = await edited((m) => {
    Object.assign(present(m.graphs.denoise.inputs[1], "time"), { role: "timestep" });
  });
  expect(message).toContain(
    "/graphs/denoise/inputs/1/role: found timestep, expected time, the nearest of images, tokens, ",
  );
  for (const role of INPUT_ROLES) expect(message).toContain(role);
});

test("every variant's manifest agrees with itself", () => {
  for (const name of manifests.keys()) expect(after(name, () => undefined)).toBe("nothing");
});

test("types, shapes and fields that a role does not have", () => {
  const cases: [name: string, change: Change, expected: string][] = [
    ["groot", (of) => (of("denoise", "timesteps").dtype = "bool"), "/dtype: found bool, expected f32 or i64"],
    [
      "groot",
      (of) => delete of("denoise", "timesteps").buckets,
      "/buckets: found nothing, expected a number of buckets, for a time in i64",
    ],
    ["groot", (of) => (of("denoise", "timesteps").shape = [2]), '/shape: found [2], expected [1] or ["batch",6]'],
    ["groot", (of) => (of("denoise", "x_t").buckets = 10), "/buckets: found 10, expected nothing for the role latent"],
    ["openpi", (of) => (of("prefill", "tokens").dtype = "f32"), "/dtype: found f32, expected i64"],
    [
      "openpi",
      (of) => (of("prefill", "mask_top").cameras = ["left"]),
      "/cameras: found left, expected one of top, shoulder, wrist",
    ],
    [
      "openpi",
      (of) => (of("prefill", "image_shoulder").cameras = ["top"]),
      "found top, top, wrist as views, expected top once",
    ],
    [
      "openpi",
      (of) => (of("prefill", "image_top").cameras = ["side"]),
      "found side, shoulder, wrist as views, expected top once",
    ],
    ["openpi", (of) => (of("prefill", "image_top").shape = ["batch", 2, 3, 28, 28]), 'expected ["batch",1,3,28,28]'],
    [
      "pixels",
      (_, m) => (m.image.filter = "torch-bilinear"),
      "/image/filter: found torch-bilinear, expected f32 images for its unrounded values",
    ],
    ["openpi", (of) => (of("prefill", "token_mask").role = "time"), "/role: found time, expected images or tokens or "],
    [
      "openpi",
      (of) => Object.assign(of("prefill", "token_mask"), { role: "image_mask", shape: ["batch", 3] }),
      "found none with role token_mask, expected one",
    ],
    [
      "openpi",
      (_, m) => (m.action.prefix = 2),
      "found nothing about the rows that a chunk continues, expected a time for each row",
    ],
    ["openpi", (_, m) => (m.action.prefix = 6), "/action/prefix: found 6, expected less than the 6 rows"],
    [
      "openpi",
      (of) => (of("denoise", "t").shape = ["batch", 6]),
      "found rows that the chunk continues, expected none, without /action/prefix",
    ],
    [
      "world",
      (of) => (of("prefill", "token_mask").role = "block_length"),
      "/role: found block_length, expected images or tokens or token_mask or image_mask or state",
    ],
    [
      "world",
      (of) => (of("prefill", "images").cameras = ["left", "top", "right"]),
      "found left, top, right as views, expected top, left, right",
    ],
    [
      "world",
      (of, m) => m.graphs.denoise?.inputs.push({ ...of("denoise", "memory_length"), name: "again" }),
      "found 2 with role memory_length, expected one",
    ],
  ];
  for (const [name, change, expected] of cases) expect(after(name, change)).toContain(expected);
});
