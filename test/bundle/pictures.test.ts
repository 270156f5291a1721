/** Cameras with pictures of several sizes: what their views say, and the image inputs that fit them. */
import { beforeAll, expect, test } from "bun:test";
import { contradiction } from "../../src/bundle/consistency.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { groups, imageTokens, pictures } from "../../src/bundle/pictures.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, VARIANT_DIR } from "./built.ts";

let built: Manifest;
beforeAll(async () => {
  built = (await bundleOf(`${VARIANT_DIR}/views`)).manifest;
});

/** Of the bundle with three cameras of two sizes. */
function faultOf(edit: (manifest: Manifest) => void): string | undefined {
  const manifest = structuredClone(built);
  edit(manifest);
  return contradiction(manifest);
}

const input = (manifest: Manifest, index: number) => present(manifest.graphs.prefill.inputs[index], "an input");
const view = (manifest: Manifest) => present(manifest.views?.[0], "a view");

test("a view says what differs from image, and with a way of resizing has its own place or none", () => {
  const { image } = built;
  expect([image.resize, image.place, image.tokens]).toEqual(["pad", "top_left", 4]);
  const usual = { width: 28, height: 28, resize: "pad", place: "top_left", tokens: 4 };
  expect(pictures(built)).toEqual([
    { camera: "wrist", ...usual },
    { camera: "side", ...usual },
    { camera: "above", width: 56, height: 28, resize: "stretch", place: undefined, tokens: 8 },
  ] as ReturnType<typeof pictures>);
  const same = structuredClone(built);
  delete view(same).resize;
  expect(pictures(same)[2]).toEqual({ camera: "above", ...usual, width: 56, tokens: 8 } as never);
  expect(imageTokens(built)).toBe(16);
});

test("neighbours of one size share an input of the graph", () => {
  expect(groups(built).map(({ cameras, usual }) => [cameras, usual])).toEqual([
    [["wrist", "side"], true],
    [["above"], false],
  ]);
  const apart = { ...built, cameras: ["wrist", "above", "side"] };
  expect(groups(apart).map(({ cameras }) => cameras)).toEqual([["wrist"], ["above"], ["side"]]);
  const shapes = built.graphs.prefill.inputs.slice(0, 2).map(({ cameras, shape }) => [cameras, shape]);
  expect(shapes).toEqual([
    [
      ["wrist", "side"],
      ["batch", 2, 3, 28, 28],
    ],
    [["above"], ["batch", 1, 3, 28, 56]],
  ]);
});

test("one picture of an input may do without its dimension", () => {
  expect(
    faultOf((m) => {
      input(m, 1).shape = ["batch", 3, 28, 56];
    }),
  ).toBeUndefined();
  expect(
    faultOf((m) => {
      input(m, 0).shape = ["batch", 3, 28, 28];
    }),
  ).toContain('/graphs/prefill/inputs/0/shape: found ["batch",3,28,28], expected ["batch",2,3,28,28]');
});

test("views and image inputs that contradict each other", () => {
  const cases: [edit: (m: Manifest) => void, fault: string][] = [
    [
      (m) => Object.assign(view(m), { camera: "below" }),
      "/views/0/camera: found below, expected wrist or side or above",
    ],
    [(m) => m.views?.push(view(m)), "/views/1/camera: found above, expected a camera that stands once"],
    [
      (m) => Object.assign(view(m), { place: "centre" }),
      "/views/0/place: found centre, expected nothing, with stretch",
    ],
    [
      (m) => Object.assign(view(m), { height: 42 }),
      '/graphs/prefill/inputs/1/shape: found ["batch",1,3,28,56], expected ["batch",1,3,42,56]',
    ],
    [
      (m) => {
        delete m.views;
      },
      '/graphs/prefill/inputs/1/shape: found ["batch",1,3,28,56], expected ["batch",1,3,28,28]',
    ],
    [
      (m) => {
        delete input(m, 1).cameras;
      },
      '/graphs/prefill/inputs/1/cameras: found ["wrist","side","above"], expected cameras whose pictures have one size',
    ],
    [
      (m) => {
        input(m, 1).cameras = ["wrist"];
        input(m, 1).shape = ["batch", 1, 3, 28, 28];
      },
      "/graphs/prefill/inputs: found wrist, side, wrist as views, expected wrist once",
    ],
    [
      (m) => input(m, 1).cameras?.push("back"),
      '/graphs/prefill/inputs/1/cameras: found ["above","back"], expected cameras whose pictures have one size',
    ],
    [(m) => input(m, 0).cameras?.pop(), '/graphs/prefill/inputs/0/shape: found ["batch",2,3,28,28]'],
    [
      (m) => m.graphs.prefill.inputs.splice(1, 1),
      "/graphs/prefill/inputs: found wrist, side as views, expected above once",
    ],
    [
      (m) => {
        input(m, 0).cameras = ["wrist", "side", "above"];
      },
      '/graphs/prefill/inputs/0/cameras: found ["wrist","side","above"], expected cameras whose pictures have one size',
    ],
    [(m) => Object.assign(input(m, 0), { dtype: "i64" }), "/graphs/prefill/inputs/0/dtype: found i64, expected f32"],
    [(m) => Object.assign(input(m, 2), { cameras: ["wrist"] }), "/graphs/prefill/inputs/2/cameras"],
  ];
  for (const [edit, expected] of cases) expect(faultOf(edit)).toContain(expected);
});
