/**
 * How fast do uploads come onto the disk through the service, and how fast do plain programs write and hash the same bytes there? What a
 * robot feels of uploads is a part of the proof `interference`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LIMITS } from "../src/limits.ts";
import { type Child, startChild } from "../src/measure/child.ts";
import { Problem } from "../src/std/problem.ts";
import { textOf } from "./child.ts";
import { processorTime, since } from "./process.ts";
import { type Figure, judged, MIB, medianOver, type Proof } from "./proof.ts";
import { finishParts, putFiles, putParts, randomBytes, type Store } from "./runs/upload.ts";

const SIZES = {
  small: { rounds: 1, fileBytes: 16 * MIB, files: 1, parts: 2 },
  full: { rounds: 5, fileBytes: 64 * MIB, files: 16, parts: 64 },
} as const;
type Plan = (typeof SIZES)[keyof typeof SIZES];

export const runs: Proof = {
  name: "runs",
  question: "How fast do uploads come onto the disk, beside programs that only write and hash?",
  async run(size) {
    const speeds = await throughput(SIZES[size]);
    return speeds instanceof Problem ? speeds : judged(speeds);
  },
};

const AT_ONCE = 4;
/** Asked for: of what `dd` with fsync and a SHA-256 of the same bytes reach. */
const RATIO_MIN = 0.7;

/** Bytes, seconds, and processor seconds of the service. */
interface Timed {
  readonly bytes: number;
  readonly seconds: number;
  readonly processor: number;
}

interface Round {
  readonly plain: Timed;
  readonly files: Timed;
  readonly parts: Timed;
  readonly finish: Timed;
}

async function throughput(plan: Plan): Promise<Figure[] | Problem> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-bench-runs-"));
  try {
    const bytes = randomBytes(plan.fileBytes);
    const source = join(folder, "source");
    await Bun.write(source, bytes);
    const rounds: Round[] = [];
    for (let at = 0; at < plan.rounds; at += 1) {
      const round = await measuredRound(plan, bytes, { folder, source, plainFirst: at % 2 === 0 });
      if (round instanceof Problem) return round;
      rounds.push(round);
    }
    return figures(rounds);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Disk {
  readonly folder: string;
  readonly source: string;
  readonly plainFirst: boolean;
}

async function measuredRound(plan: Plan, bytes: Uint8Array, disk: Disk): Promise<Round | Problem> {
  const before = disk.plainFirst ? await plainly(plan, disk) : undefined;
  if (before instanceof Problem) return before;
  const child = await startChild({ device: "echo" });
  if (child instanceof Problem) return child;
  let through: Omit<Round, "plain"> | Problem;
  try {
    through = await throughService(child, plan, bytes);
    if (through instanceof Problem) return await child.explain(through);
  } finally {
    await child.stop();
  }
  const plain = before ?? (await plainly(plan, disk));
  return plain instanceof Problem ? plain : { plain, ...through };
}

async function plainly({ files, fileBytes }: Plan, { source, folder }: Disk) {
  const inside = await mkdtemp(join(folder, "plain-"));
  let seconds = 0;
  // Into new files, as an upload goes into new files: memory that is used for the first time is slow on a virtual machine.
  for (let at = 0; at < files; at += 1) {
    const path = join(inside, `plain-${at}`);
    for (const words of [
      ["dd", `if=${source}`, `of=${path}`, "bs=1M", "conv=fsync"],
      ["openssl", "dgst", "-sha256", path],
    ]) {
      const before = performance.now();
      const said = await textOf({ name: words[0] ?? "", words });
      if (said instanceof Problem) return said;
      seconds += (performance.now() - before) / 1000;
    }
  }
  await rm(inside, { recursive: true });
  return { bytes: files * fileBytes, seconds, processor: 0 };
}

async function throughService(
  child: Child,
  { files, parts, fileBytes }: Plan,
  bytes: Uint8Array,
): Promise<Omit<Round, "plain"> | Problem> {
  const store = storeOf(child, "throughput");
  const part = bytes.subarray(0, LIMITS.runPartBytes);
  const byPut = await timed(child, files * fileBytes, () => putFiles(store, bytes, files, AT_ONCE));
  if (byPut instanceof Problem) return byPut;
  let uploadId = "";
  const byParts = await timed(child, parts * part.length, async () => {
    const put = await putParts(store, part, parts, AT_ONCE);
    if (put instanceof Problem) return put;
    uploadId = put;
    return undefined;
  });
  if (byParts instanceof Problem) return byParts;
  const finish = await timed(child, parts * part.length, () => finishParts(store, uploadId));
  return finish instanceof Problem ? finish : { files: byPut, parts: byParts, finish };
}

function storeOf({ service }: Child, run: string): Store {
  return { url: `${service.url}/v1/robot/runs/bench/${run}`, apiKey: service.apiKey };
}

async function timed({ pid }: Child, bytes: number, work: () => Promise<undefined | Problem>) {
  const [before, used] = [performance.now(), await processorTime(pid)];
  const failed = await work();
  if (failed) return failed;
  const seconds = (performance.now() - before) / 1000;
  return { bytes, seconds, processor: since(used, await processorTime(pid)).allMs / 1000 };
}

function figures(rounds: readonly Round[]): Figure[] {
  const rate = ({ bytes, seconds }: Pick<Timed, "bytes" | "seconds">) => bytes / 1e6 / seconds;
  const figure = medianOver(rounds);
  const speed = (measure: string, of: (round: Round) => number) => figure(measure, "MB/s", of);
  const ratio = (measure: string, of: (round: Round) => number, limits: Partial<Figure> = { least: RATIO_MIN }) =>
    figure(`${measure} / plain`, "1", (round) => of(round) / rate(round.plain), limits);
  const whole = ({ parts, finish }: Round) => rate({ bytes: parts.bytes, seconds: parts.seconds + finish.seconds });
  const cost = (measure: string, of: (round: Round) => Timed) =>
    figure(`${measure}, processor seconds of the service per GB`, "s", (round) => {
      const { processor, bytes } = of(round);
      return (processor / bytes) * 1e9;
    });
  return [
    speed("plain: dd conv=fsync, then openssl dgst, one file after the other", ({ plain }) => rate(plain)),
    speed(`files by PUT, ${AT_ONCE} at once`, ({ files }) => rate(files)),
    ratio("files by PUT", ({ files }) => rate(files)),
    cost("files by PUT", ({ files }) => files),
    speed(`parts of one file, ${AT_ONCE} at once`, ({ parts }) => rate(parts)),
    ratio("parts", ({ parts }) => rate(parts)),
    cost("parts", ({ parts }) => parts),
    speed("the end of an upload, which reads, hashes and writes the file again", ({ finish }) => rate(finish)),
    ratio("the end", ({ finish }) => rate(finish)),
    cost("the end", ({ finish }) => finish),
    speed("parts with the end: every byte is written and hashed twice", whole),
    ratio("parts with the end", whole, {}),
  ];
}
