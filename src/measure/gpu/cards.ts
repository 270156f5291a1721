/**
 * What a card can do at most, by its maker's data sheet: what a roofline is drawn from. Dense products (a sheet's figures "with sparsity" are
 * twice as high), sums in float32, boost clocks. A card that is not here has no roofline; its times are measured all the same.
 */

/** Types that products are computed in. */
export type ProductType = "f32" | "f16" | "bf16" | "i8";

export interface Card {
  readonly name: string;
  readonly bytesPerSecond: number;
  /** A type that is not here has no figure. */
  readonly flopsPerSecond: Readonly<Partial<Record<ProductType, number>>>;
  readonly source: string;
}

const TERA = 1e12;

/** `half`: f16 and bf16, which these cards compute alike. `f32` is that of the ordinary cores. In TFLOP/s, GB/s. */
function card(name: string, gigabytes: number, half: number, f32: number, i8: number, source: string) {
  const all = { f32, f16: half, bf16: half, i8 };
  const flopsPerSecond = Object.fromEntries(Object.entries(all).map(([type, figure]) => [type, figure * TERA]));
  return { name, bytesPerSecond: gigabytes * 1e9, flopsPerSecond, source } as const;
}

const NVIDIA = (what: string) => `NVIDIA, ${what}`;

/** Patterns of the driver's names; the first that matches decides. */
const CARDS: readonly (readonly [RegExp, Card])[] = [
  [/\bB200\b/, card("B200", 8000, 2250, 75, 4500, NVIDIA("DGX B200 data sheet, an eighth"))],
  [/\bH200\b.*NVL/, card("H200 NVL", 4800, 835.5, 60, 1670.5, NVIDIA("H200 data sheet"))],
  [/\bG?H200\b/, card("H200", 4800, 989.5, 67, 1979, NVIDIA("H200 data sheet"))],
  [/\bH100\b.*NVL/, card("H100 NVL", 3900, 835.5, 60, 1670.5, NVIDIA("H100 data sheet"))],
  [/\bH100\b.*PCIe/, card("H100 PCIe", 2000, 756, 51, 1513, NVIDIA("H100 data sheet"))],
  [/\bH100\b/, card("H100 SXM", 3350, 989.5, 67, 1979, NVIDIA("H100 data sheet"))],
  [
    /\bA100\b.*80GB.*PCIe|\bA100\b.*PCIe.*80GB/,
    card("A100 80GB PCIe", 1935, 312, 19.5, 624, NVIDIA("A100 data sheet")),
  ],
  [/\bA100\b.*80GB/, card("A100 80GB SXM", 2039, 312, 19.5, 624, NVIDIA("A100 data sheet"))],
  [/\bA100\b/, card("A100 40GB", 1555, 312, 19.5, 624, NVIDIA("A100 data sheet"))],
  [/\bL40S\b/, card("L40S", 864, 362, 91.6, 733, NVIDIA("L40S data sheet"))],
  [/\bL4\b/, card("L4", 300, 121, 30.3, 242.5, NVIDIA("L4 data sheet"))],
  [/\bA10\b/, card("A10", 600, 125, 31.2, 250, NVIDIA("A10 data sheet"))],
  [/RTX 5090(?! D| Laptop)/, card("RTX 5090", 1792, 209.5, 104.8, 838, NVIDIA("RTX Blackwell architecture paper"))],
  [/RTX 4090(?! D| Laptop)/, card("RTX 4090", 1008, 165.2, 82.6, 660.6, NVIDIA("Ada architecture paper"))],
  [/RTX 3090(?! Ti)/, card("RTX 3090", 936, 71, 35.6, 284, NVIDIA("GA102 architecture paper"))],
];

/** The card with that name of the driver's. */
export function cardOf(name: string): Card | undefined {
  return CARDS.find(([pattern]) => pattern.test(name))?.[1];
}
