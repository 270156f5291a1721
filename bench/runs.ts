/** How fast do uploads come onto the disk, and does a robot feel them? See bench/runs/throughput.ts and bench/runs/beside.ts. */
import { Problem } from "../src/std/problem.ts";
import { judged, type Proof } from "./proof.ts";
import { beside } from "./runs/beside.ts";
import { throughput } from "./runs/throughput.ts";

const MIB = 1024 * 1024;
const SIZES = {
  small: {
    throughput: { rounds: 1, fileBytes: 16 * MIB, files: 1, parts: 2 },
    beside: { rounds: 1, chunks: 20, warmup: 5, settleMs: 50 },
  },
  full: {
    throughput: { rounds: 5, fileBytes: 64 * MIB, files: 16, parts: 64 },
    beside: { rounds: 5, chunks: 2000, warmup: 300, settleMs: 1000 },
  },
} as const;

export const runs: Proof = {
  name: "runs",
  question: "How fast do uploads come onto the disk, and does a robot feel an upload of 20 MB/s to its node?",
  async run(size) {
    const plan = SIZES[size];
    const speeds = await throughput(plan.throughput);
    if (speeds instanceof Problem) return speeds;
    const felt = await beside(plan.beside);
    if (felt instanceof Problem) return felt;
    return judged([...speeds, ...felt.rows], { above: `${felt.text}\n` });
  },
};
