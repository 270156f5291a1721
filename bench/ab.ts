/**
 * Is this checkout faster or slower than another commit? `npm run prove ab COMMIT`; without COMMIT it is compared with itself, which
 * shows what chance does on this machine.
 *
 * The other commit is built in a separate worktree. In each round both services run in fresh processes with the same settings.
 * One robot asks them in the order A B B A A B B A, so that a machine that gets slower does so for both. The client is this
 * checkout's for both. Processor time is that of the service's process; a thread that waits costs nothing.
 */
import { origin } from "../src/measure/origin.ts";
import { drawnScenes, type Scenes } from "../src/measure/sample/scenes.ts";
import { percentile } from "../src/measure/stats.ts";
import { present } from "../src/std/assert.ts";
import { Problem } from "../src/std/problem.ts";
import { RandomStream } from "../src/std/random.ts";
import { table } from "../src/std/text-table.ts";
import { type Ratio, type Rounds, ratioOf } from "./ab/interval.ts";
import { QUESTIONS, type Question } from "./ab/questions.ts";
import { ownTree, type Tree, treeOf } from "./ab/tree.ts";
import { type ProcessorTime, processorTime, since } from "./process.ts";
import type { Figure, Outcome, Proof, Size } from "./proof.ts";
import { type Contender, inTurns, type Runner, type Plan as TurnsPlan } from "./turns.ts";

interface Plan extends TurnsPlan {
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
  /** Time of each chunk. */
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
    const sides = { base, changed };
    const contenders = Object.entries(sides).map(
      ([side, tree]): Contender<Turn> => ({
        ...{ name: side, own: true },
        start: () => started(tree, question, scenes, question.chunks[plan.chunks]),
      }),
    );
    const done = await inTurns(async () => contenders, plan);
    if (done instanceof Problem) return done;
    const rounds = done.rounds.map((round) => {
      const [before = [], after = []] = [round.get("base"), round.get("changed")];
      return before.map((turn, at) => ({ base: turn, changed: present(after[at], "a turn") }));
    });
    compared.push(...figuresOf(question, rounds));
  }
  return compared;
}

/** A service of the tree with one robot. */
async function started(
  tree: Tree,
  { device, connect }: Question,
  scenes: Scenes,
  chunks: number,
): Promise<Runner<Turn> | Problem> {
  const child = await tree.start({ device });
  if (child instanceof Problem) return child;
  const robot = await connect(child.service, scenes);
  if (robot instanceof Problem) {
    await child.stop();
    return robot;
  }
  return {
    async turn() {
      const before = await processorTime(child.pid);
      const ms = await robot.drive(chunks);
      return ms instanceof Problem ? ms : { ms, processor: since(before, await processorTime(child.pid)) };
    },
    async stop() {
      await robot.leave();
      await child.stop();
    },
  };
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
