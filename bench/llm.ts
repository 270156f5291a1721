/**
 * What does the service add to a language model's answer?
 *
 * A provider that costs next to nothing runs in a separate process. Calls go to it directly and through the service, alternating, with
 * fresh processes in each round. Billing is on and durable (SQLite). A bare fdatasync, between the turns and on the same disk, is what
 * a durable write costs at least. Client, service and provider share the machine's cores.
 *
 * Outside the window: TLS, and a network. A token is a delta; its way is the time from the provider's sending to the client.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { median, summary } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { type Setup, setUp } from "./llm/setup.ts";
import { callsPerSecond, openStreams, plainCalls, type Target, timedStream, wholeStreams } from "./llm/target.ts";
import { processorTime, residentBytes, since } from "./process.ts";
import { type Figure, judged, medianOver, type Proof } from "./proof.ts";

const SIZES = {
  small: { rounds: 1, turns: 2, calls: 10, warmup: 10, streams: 2, tokens: 10, rate: 50, cpu: 5, open: 20 },
  full: { rounds: 5, turns: 20, calls: 50, warmup: 1500, streams: 20, tokens: 100, rate: 6000, cpu: 1000, open: 1000 },
} as const;
type Plan = (typeof SIZES)[keyof typeof SIZES];

/** Asked for. */
const MAX = {
  addedP50Ms: 0.5,
  addedP99Ms: 2,
  firstTokenMs: 0.6,
  tokenMs: 0.1,
  cpuSeconds: 1,
  streamKb: 64,
} as const;
const CALLS_PER_SECOND_LEAST = 3000;

const GAP_MS = 5;
const CONNECTIONS = 64;
const CPU_CONNECTIONS = 16;
/** Code that ran a few times is not compiled yet: what is measured is a service that has been up for some seconds. */
const WARMUP_TOKENS = 10;
/** What of the log is written before a sync: about as much as a response adds. */
const SYNC_BYTES = 32_768;
const READING_MS = 2_000;

/** One round; times in ms. */
interface Round {
  readonly direct: readonly number[];
  readonly plain: readonly number[];
  readonly streamed: readonly number[];
  readonly sync: readonly number[];
  readonly first: { readonly direct: number; readonly through: number };
  readonly way: { readonly direct: number; readonly through: number };
  readonly perSecond: number;
  /** For 100,000 tokens. */
  readonly cpuSeconds: number;
  readonly streamKb: number;
}

export const llm: Proof = {
  name: "llm",
  question: "What does the service add to a language model's answer?",
  async run(size) {
    const plan = SIZES[size];
    const rounds: Round[] = [];
    for (let at = 0; at < plan.rounds; at += 1) {
      const setup = await setUp();
      if (setup instanceof Problem) return setup;
      await using _processes = setup;
      rounds.push(await measured(setup, plan));
    }
    return judged(figures(rounds));
  },
};

async function measured(setup: Setup, plan: Plan): Promise<Round> {
  const { provider, plain, stream, child } = setup;
  for (const target of [provider, plain, stream]) {
    await plainCalls(target, plan.warmup);
    await wholeStreams(target, CPU_CONNECTIONS, plan.warmup, WARMUP_TOKENS);
  }
  const calls = { direct: [] as number[], plain: [] as number[], streamed: [] as number[], sync: [] as number[] };
  const log = openSync(join(child.dataDir, "bare-sync"), "w");
  for (let turn = 0; turn < plan.turns; turn += 1) {
    calls.direct.push(...(await plainCalls(provider, plan.calls)));
    calls.plain.push(...(await plainCalls(plain, plan.calls)));
    calls.streamed.push(...(await plainCalls(stream, plan.calls)));
    calls.sync.push(...(await bareSyncs(log, provider, plan.calls)));
  }
  closeSync(log);
  const direct = await timed(provider, plan);
  const through = await timed(stream, plan);
  const perSecond = await callsPerSecond(plain, CONNECTIONS, plan.rate);
  return {
    ...calls,
    first: { direct: direct.first, through: through.first },
    way: { direct: direct.way, through: through.way },
    perSecond,
    cpuSeconds: await streamedCpu(setup, plan),
    streamKb: await openMemory(setup, plan),
  };
}

/** Each after a call, as a service's are: a disk and a core that do nothing else answer faster. */
async function bareSyncs(log: number, provider: Target, count: number): Promise<number[]> {
  const bytes = new Uint8Array(SYNC_BYTES);
  const ms: number[] = [];
  for (let at = 0; at < count; at += 1) {
    await plainCalls(provider, 1);
    writeSync(log, bytes);
    const before = performance.now();
    fdatasyncSync(log);
    ms.push(performance.now() - before);
  }
  return ms;
}

async function timed(target: Target, { streams, tokens }: Plan): Promise<{ first: number; way: number }> {
  const first: number[] = [];
  const way: number[] = [];
  for (let at = 0; at < streams; at += 1) {
    const { firstMs, wayMs } = await timedStream(target, tokens, GAP_MS);
    first.push(firstMs);
    // The first token waits for what all others find ready.
    way.push(...wayMs.slice(1));
  }
  return { first: median(first), way: median(way) };
}

async function streamedCpu({ child, stream }: Setup, { cpu: streams }: Plan): Promise<number> {
  const tokens = 100;
  await wholeStreams(stream, CPU_CONNECTIONS, Math.ceil(streams / 10), tokens);
  const before = await processorTime(child.pid);
  await wholeStreams(stream, CPU_CONNECTIONS, streams, tokens);
  const { allMs } = since(before, await processorTime(child.pid));
  return (allMs / 1000) * (100_000 / (streams * tokens));
}

/** A second batch beside the first: what the first calls of a process need for good is not counted. */
async function openMemory({ child, stream }: Setup, { open }: Plan): Promise<number> {
  await using _first = await openStreams(stream, Math.ceil(open / 4));
  await Bun.sleep(READING_MS);
  const before = await residentBytes(child.pid);
  await using _second = await openStreams(stream, open);
  await Bun.sleep(READING_MS);
  return ((await residentBytes(child.pid)) - before) / open / 1000;
}

function figures(rounds: readonly Round[]): Figure[] {
  const figure = medianOver(rounds);
  const times = (["direct", "plain", "streamed", "sync"] as const).flatMap((which) =>
    (["p50", "p99"] as const).map((order) =>
      figure(`${NAMES[which]}, ${order}`, "ms", (round) => summary(round[which])[order]),
    ),
  );
  const added = (which: "plain" | "streamed", order: "p50" | "p99", limits: Partial<Figure> = {}) =>
    figure(
      `added to ${which === "plain" ? "a plain call" : "one that the provider streams"}, ${order}`,
      "ms",
      (round) => summary(round[which])[order] - summary(round.direct)[order] - summary(round.sync)[order],
      limits,
    );
  const each = `${CONNECTIONS} connections`;
  return [
    ...times,
    added("plain", "p50", { limit: MAX.addedP50Ms }),
    added("plain", "p99", { limit: MAX.addedP99Ms }),
    added("streamed", "p50"),
    added("streamed", "p99"),
    figure("added to the first token", "ms", ({ first }) => first.through - first.direct, { limit: MAX.firstTokenMs }),
    figure("added to each token", "ms", ({ way }) => way.through - way.direct, { limit: MAX.tokenMs }),
    figure(`plain calls a second, ${each}`, "1", ({ perSecond }) => perSecond, { least: CALLS_PER_SECOND_LEAST }),
    figure("processor time for 100,000 tokens, streams of 100", "s", ({ cpuSeconds }) => cpuSeconds, {
      limit: MAX.cpuSeconds,
    }),
    figure("memory of an open stream", "kB", ({ streamKb }) => streamKb, { limit: MAX.streamKb }),
  ];
}

const NAMES = {
  direct: "plain call, provider alone",
  plain: "plain call through the service",
  streamed: "plain call, streamed by the provider",
  sync: "bare fdatasync",
} as const;
