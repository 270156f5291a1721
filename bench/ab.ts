/**
 * Is this checkout faster or slower than another commit? `npm run prove ab COMMIT`; without COMMIT it is compared with itself, which
 * shows what chance does on this machine.
 *
 * The other commit is built in a worktree of its own. In each round both services run in fresh processes, with the same settings,
 * and one robot asks them in turns: A B B A A B B A, so that a machine that gets slower does so for both. The client is this
 * checkout's for both. Processor time is that of the service's process; a thread that waits costs nothing.
 */

import { origin } from "../src/measure/origin.ts";
import { type ProcessorTime, processorTime, since } from "../src/measure/process.ts";
import { drawnScenes, type Scenes } from "../src/measure/sample/scenes.ts";
import { percentile } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { RandomStream } from "../src/std/random.ts";
import { table } from "../src/std/text-table.ts";
import { type Pair, type Ratio, type Rounds, ratioOf } from "./ab/interval.ts";
import { QUESTIONS, type Question, type Robot } from "./ab/questions.ts";
import { ownTree, type Tree, treeOf } from "./ab/tree.ts";
import type { Figure, Outcome, Proof, Size } from "./proof.ts";

interface Plan {
  /** Each with fresh processes. */
  readonly rounds: number;
  /** Of each side. */
  readonly turns: number;
  /** Turns before those that are measured; they warm up connections, caches and compilers of both sides. */
  readonly warmup: number;
  /** Chunks of a turn, as the question has them. */
  readonly chunks: Size;
}

const SIZES: { readonly [S in Size]: Plan } = {
  small: { rounds: 1, turns: 2, warmup: 1, chunks: "small" },
  full: { rounds: 5, turns: 16, warmup: 4, chunks: "full" },
};
const SCENES = 4;

/** Asked for: a figure that is worse by more than this, with the whole interval above 1, is a regression. */
const WORSE_BY = 1.05;

interface Turn {
  /** Of each chunk. */
  readonly ms: readonly number[];
  readonly processor: ProcessorTime;
}

/** The figures of some turns; the same units in both commits. */
const FIGURES: Readonly<Record<string, (turns: readonly Turn[]) => number>> = {
  "chunk p50": (turns) => percentile(sorted(turns), 50),
  "chunk p99": (turns) => percentile(sorted(turns), 99),
  "processor per chunk": (turns) => perChunk(turns, ({ allMs }) => allMs),
  "processor of the event loop's thread per chunk": (turns) => perChunk(turns, ({ loopMs }) => loopMs),
};

function sorted(turns: readonly Turn[]): number[] {
  return turns.flatMap(({ ms }) => ms).sort((a, b) => a - b);
}

function perChunk(turns: readonly Turn[], read: (time: ProcessorTime) => number): number {
  const chunks = turns.reduce((sum, { ms }) => sum + ms.length, 0);
  return turns.reduce((sum, { processor }) => sum + read(processor), 0) / chunks;
}

export interface Compared extends Ratio {
  readonly question: string;
  readonly figure: string;
}

export const ab: Proof = {
  name: "ab",
  question: "Is this checkout faster or slower than another commit, or than itself?",
  argument: "COMMIT",
  async run(size, revision) {
    const changed = await ownTree((await origin()).commit);
    const base = revision === undefined ? changed : await treeOf(revision);
    if (base instanceof Problem) return base;
    const compared = await compare(base, changed, SIZES[size]);
    return compared instanceof Problem ? compared : report(base, changed, compared);
  },
};

/** Every figure of every question, of both sides. */
export async function compare(base: Tree, changed: Tree, plan: Plan): Promise<Compared[] | Problem> {
  const scenes = await drawnScenes(SCENES);
  if (scenes instanceof Problem) return scenes;
  const compared: Compared[] = [];
  for (const question of QUESTIONS) {
    const rounds: Pair<Turn>[][] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      const turns = await measuredRound({ base, changed }, question, scenes, plan);
      if (turns instanceof Problem) return turns;
      rounds.push(turns);
    }
    compared.push(...figuresOf(question, rounds));
  }
  return compared;
}

type Side = keyof Pair<unknown>;

async function measuredRound(
  trees: Pair<Tree>,
  question: Question,
  scenes: Scenes,
  plan: Plan,
): Promise<Pair<Turn>[] | Problem> {
  const ends: (() => Promise<unknown>)[] = [];
  try {
    const connected = async (side: Side) => {
      const child = await trees[side].start({ device: question.device });
      if (child instanceof Problem) return child;
      ends.push(() => child.stop());
      const robot = await question.connect(child.service, scenes);
      if (robot instanceof Problem) return robot;
      ends.push(() => robot.leave());
      return { pid: child.pid, robot };
    };
    const [base, changed] = [await connected("base"), await connected("changed")];
    if (base instanceof Problem) return base;
    if (changed instanceof Problem) return changed;
    return await inTurns({ base, changed }, question, plan);
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

interface Connected {
  readonly pid: number;
  readonly robot: Robot;
}

async function inTurns(sides: Pair<Connected>, question: Question, plan: Plan): Promise<Pair<Turn>[] | Problem> {
  const { turns, warmup } = plan;
  const chunks = question.chunks[plan.chunks];
  const done: Pair<Turn>[] = [];
  for (let turn = -warmup; turn < turns; turn += 1) {
    const order: Side[] = turn % 2 === 0 ? ["base", "changed"] : ["changed", "base"];
    const shown: Partial<Record<Side, Turn>> = {};
    for (const side of order) {
      const one = await measuredTurn(sides[side], chunks);
      if (one instanceof Problem) return one;
      shown[side] = one;
    }
    if (turn >= 0) done.push(shown as Pair<Turn>);
  }
  return done;
}

async function measuredTurn({ pid, robot }: Connected, chunks: number): Promise<Turn | Problem> {
  const before = await processorTime(pid);
  const ms = await robot.drive(chunks);
  if (ms instanceof Problem) return ms;
  return { ms, processor: since(before, await processorTime(pid)) };
}

function figuresOf(question: Question, rounds: Rounds<Turn>): Compared[] {
  return Object.entries(FIGURES).map(([figure, of]) => {
    // Its own stream for each figure, so that one more figure changes no other's interval.
    const random = new RandomStream(`${question.name} ${figure}`);
    return { question: question.name, figure, ...ratioOf(rounds, of, random) };
  });
}

function report(base: Tree, changed: Tree, compared: readonly Compared[]): Outcome {
  const head = ["", "", `${base.commit} ms`, `${changed.commit} ms`, "ratio", "95 % interval", ""];
  const lines = compared.map((one) => [
    one.question,
    one.figure,
    one.base.toFixed(3),
    one.changed.toFixed(3),
    one.ratio.toFixed(3),
    `${one.low.toFixed(3)} to ${one.high.toFixed(3)}`,
    isWorse(one) ? "WORSE" : "",
  ]);
  const rows: Figure[] = compared.flatMap(({ question, figure, ratio, low, high, changed: value }) => {
    const measure = `${question}, ${figure}`;
    return [
      { measure, value, unit: "ms" },
      { measure: `${measure}, against ${base.commit}`, value: ratio, unit: "1" },
      { measure: `${measure}, against ${base.commit}, interval from`, value: low, unit: "1" },
      { measure: `${measure}, against ${base.commit}, interval to`, value: high, unit: "1" },
    ];
  });
  const text = table([head, ...lines], ["left", "left", "right", "right", "right", "right", "left"]);
  return { text, rows, pass: !compared.some(isWorse) };
}

export function isWorse({ ratio, low }: Ratio): boolean {
  return ratio > WORSE_BY && low > 1;
}
