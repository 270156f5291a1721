/**
 * The least time that a card needs for a graph's work: by its products or by its memory, whichever takes longer. What is achieved of it is
 * that time over the measured one.
 */
import type { Work } from "../../bundle/workload/count.ts";
import type { NumberType } from "../../bundle/workload/shapes.ts";
import type { Card, ProductType } from "./cards.ts";

export interface Roof {
  /** Over all types. */
  readonly flops: number;
  readonly bytes: number;
  /** Which of the two takes longer on the card; undefined without a card, or for a type of which the card has no figure. */
  readonly bound: "products" | "memory" | undefined;
  readonly leastMs: number | undefined;
}

/** What a device computes the products of a graph's type in. */
export type ComputedAs = (type: NumberType) => ProductType | undefined;

/** `runs`: how often the graph is computed, one after the other. */
export function roofOf(work: Work, runs: number, card: Card | undefined, computedAs: ComputedAs): Roof {
  const parts = Object.entries(work.flops) as [NumberType, number][];
  const flops = runs * parts.reduce((sum, [, count]) => sum + count, 0);
  const bytes = runs * (work.weightBytes + work.portBytes);
  if (card === undefined || work.unknown.length > 0) return { flops, bytes, bound: undefined, leastMs: undefined };
  let productSeconds = 0;
  for (const [type, count] of parts) {
    const computed = computedAs(type);
    const rate = computed && card.flopsPerSecond[computed];
    if (rate === undefined) return { flops, bytes, bound: undefined, leastMs: undefined };
    productSeconds += (runs * count) / rate;
  }
  const memorySeconds = bytes / card.bytesPerSecond;
  const bound = productSeconds > memorySeconds ? "products" : "memory";
  return { flops, bytes, bound, leastMs: 1000 * Math.max(productSeconds, memorySeconds) };
}

/** The type in which a provider computes: TensorRT may take a smaller one for f32. */
export function computedBy(device: string, precision: "f32" | "f16" | "bf16"): ComputedAs {
  return (type) => {
    if (type === "f16" || type === "bf16" || type === "i8") return type;
    if (type !== "f32") return undefined;
    return device.startsWith("tensorrt") ? precision : "f32";
  };
}
