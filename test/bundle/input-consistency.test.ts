/** Inputs that a manifest cannot mean are refused with path, found and expected; a role that nobody knows with the nearest. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { contradiction } from "../../src/bundle/consistency.ts";
import { INPUT_ROLES } from "../../src/bundle/input-roles.ts";
import { Manifest } from "../../src/bundle/manifest.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf } from "./built.ts";
import { edited } from "./damaged.ts";
import { variant, variantNames } from "./variants.ts";

const manifests = new Map<string, Manifest>();
beforeAll(async () => {
  for (const name of await variantNames()) manifests.set(name, (await variant(name)).manifest);
  manifests.set("poses", (await bundleOf(join(import.meta.dir, "../vectors/models/poses"))).manifest);
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

test("a part of the state has the columns that it names, each once, and no other input names some", () => {
  const part: Input["columns"] = ["joint_1", "joint_2", "joint_3"];
  const cases: [change: Change, expected: string][] = [
    [
      (of) => (of("denoise", "state_joint_position").columns = part?.with(1, "elbow")),
      "/columns/1: found elbow, expected one of joint_1, joint_2, gripper, joint_3",
    ],
    [
      (of) => (of("denoise", "state_joint_position").columns = part?.with(1, "joint_1")),
      "/columns/1: found joint_1, expected a name that stands once",
    ],
    [
      (of) => (of("denoise", "state_joint_position").columns = part?.slice(1)),
      '/shape: found ["batch",3], expected ["batch",2] or ["batch",1,2]',
    ],
    [(of) => (of("denoise", "x_t").columns = part), "expected nothing for the role latent"],
  ];
  for (const [change, expected] of cases) expect(after("parts", change)).toContain(expected);
  expect(
    after("poses", (of) => Object.assign(of("denoise", "state"), { columns: ["left_x"], shape: ["batch", 1] })),
  ).toContain("/columns: found left_x, expected nothing, in a state with rotations");
});

test("types, shapes and fields that a role does not have", () => {
  const cases: [name: string, change: Change, expected: string][] = [
    ["groot", (of) => (of("denoise", "timesteps").dtype = "bool"), "/dtype: found bool, expected f32 or i64 or i32"],
    [
      "groot",
      (of) => delete of("denoise", "timesteps").buckets,
      "/buckets: found nothing, expected a number of buckets, for a time in i64",
    ],
    [
      "groot",
      (of) => (of("denoise", "timesteps").shape = [2]),
      '/shape: found [2], expected [1] or [] or ["batch"] or ["batch",6]',
    ],
    ["groot", (of) => (of("denoise", "x_t").buckets = 10), "/buckets: found 10, expected nothing for the role latent"],
    [
      "groot",
      (of) => delete of("denoise", "embodiment_id").values,
      "/values: found nothing, expected the values of the constant",
    ],
    [
      "groot",
      (of) => (of("denoise", "embodiment_id").values = [1, 2]),
      "/values: found 2 values, expected 1, or one for all",
    ],
    [
      "groot",
      (of) => (of("denoise", "embodiment_id").values = [2 ** 53]),
      "/values/0: found 9007199254740992, expected a value of i64",
    ],
    ["groot", (of) => (of("denoise", "embodiment_id").values = [0.5]), "/values/0: found 0.5, expected a value of i64"],
    [
      "groot",
      (of) => Object.assign(of("denoise", "embodiment_id"), { dtype: "i32", values: [2 ** 31] }),
      "expected a value of i32",
    ],
    [
      "groot",
      (of) => Object.assign(of("denoise", "embodiment_id"), { dtype: "bool", values: [2] }),
      "expected a value of bool",
    ],
    [
      "groot",
      (of) => (of("denoise", "embodiment_id").shape = [1, "batch"]),
      '/shape: found [1,"batch"], expected numbers, and no word but batch, which is first',
    ],
    [
      "groot",
      (of) => Object.assign(of("prefill", "attention_mask"), { role: "constant", values: [1] }),
      "no word but batch",
    ],
    ["openpi", (of) => (of("prefill", "tokens").dtype = "f32"), "/dtype: found f32, expected i64 or i32"],
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
    [
      "openpi",
      (of) => (of("prefill", "image_top").shape = ["batch", 2, 3, 28, 28]),
      'expected ["batch",1,3,28,28] or ["batch",3,28,28]',
    ],
    [
      "openpi",
      (of) => (of("prefill", "position_ids").role = "time"),
      "/role: found time, expected images or tokens or ",
    ],
    ["edge", (of) => (of("prefill", "prefix_length").role = "constant"), "/values: found nothing"],
    [
      "edge",
      (of) => Object.assign(of("prefill", "prefix_length"), { role: "constant", values: [3] }),
      "found none with role token_mask or prefix_mask or prefix_length, expected one",
    ],
    [
      "edge",
      (_, m) => (m.action.prefix = 2),
      "found nothing about the rows that a chunk continues, expected a time for each row",
    ],
    ["edge", (_, m) => (m.action.prefix = 6), "/action/prefix: found 6, expected less than the 6 rows"],
    [
      "edge",
      (of) => (of("denoise", "t").shape = ["batch", 6]),
      "found rows that the chunk continues, expected none, without /action/prefix",
    ],
    [
      "world",
      (of) => (of("prefill", "token_mask").role = "prefix_mask"),
      "/role: found prefix_mask, expected images or tokens or token_mask or image_mask or position_ids or constant or state",
    ],
    [
      "world",
      (of) => (of("prefill", "images").cameras = ["left", "top", "right"]),
      "found left, top, right as views, expected top, left, right",
    ],
    [
      "world",
      (of, m) => m.graphs.denoise.inputs.push({ ...of("denoise", "memory_length"), name: "again" }),
      "found 2 with role memory_length, expected one",
    ],
  ];
  for (const [name, change, expected] of cases) expect(after(name, change)).toContain(expected);
});
