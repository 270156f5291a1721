/** Where the figures of the tests of reports come from. */
import type { Origin } from "../../src/measure/origin.ts";

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
