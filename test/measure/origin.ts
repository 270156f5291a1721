/** What the tests of reports share. */
import type { Origin } from "../../src/measure/origin.ts";

/** A figure of `bench gpu` as JSON has it. */
export interface Figure {
  readonly part: string;
  readonly batch: number;
  readonly figure: string;
  readonly value: number | null;
}

/** Reads a figure of one measurement. */
export function figureIn(figures: readonly Figure[] = []) {
  return (part: string, figure: string, batch = 1) =>
    figures.find((one) => one.part === part && one.figure === figure && one.batch === batch)?.value;
}

/** The origin of their figures. */
export const from: Origin = {
  date: "2026-01-02T03:04:05Z",
  commit: "abc1234",
  versions: { tendon: "0.1.0", bun: "1.4.5", onnxruntime: "1.30.0", libjpeg_turbo: "3.1.3" },
  machine: {
    cpu: "Maker(R) Chip, 7B13 @ 2 GHz",
    cores: 2,
    memory_gib: 8,
    gpu: "none",
    placement: "the service and its clients share all cores",
  },
};
