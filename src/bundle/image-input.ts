/** The images that a graph reads: normalised numbers, or pixels that it normalises, a quarter of their bytes. */
import type { Facts } from "./architecture.ts";
import type { GraphBuilder, Value } from "./graph.ts";

/** An input of images of one size. */
interface ImageInput {
  readonly name: string;
  /** Observations, and pictures of each. */
  readonly lead: readonly ["batch" | 1, number];
  readonly width: number;
  readonly height: number;
  /** The views that it shows; absent: all cameras. */
  readonly cameras?: readonly string[];
}

/** [...`lead`, 3, height, width], as f32, normalised. */
export function imageInput(
  graph: GraphBuilder,
  { name, lead, width, height, cameras }: ImageInput,
  { mean, std }: Facts["image"],
): Value {
  const of = cameras && { cameras: [...cameras] };
  const shape = [...lead, 3, height, width];
  if (graph.build.frames === "f32") return graph.input({ name, dtype: "f32", shape }, "images", of);
  const pixels = graph.input({ name, dtype: "u8", shape }, "images", of);
  // The engine's own table of what each value of a channel becomes (native/src/image/frame.rs): the same bits, on any device.
  const table = Float32Array.from({ length: 3 * 256 }, (_, at) => {
    const channel = at >> 8;
    return ((at & 255) / 255 - (mean[channel] ?? 0)) / (std[channel] ?? 1);
  });
  const own = cameras === undefined ? "" : ` of ${name}`;
  const rows = graph.int32(`pixels.rows${own}`, [3, 1, 1], Int32Array.of(0, 256, 512));
  const places = graph.op("Add", [graph.cast(pixels, "i32"), rows]);
  return graph.op("Gather", [graph.floats(`pixels.table${own}`, [3 * 256], table), places], { axis: 0 });
}
