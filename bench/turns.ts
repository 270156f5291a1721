/** Contenders that are measured in one run: fresh processes in each round, and turns in alternating order. */
import { median } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { table } from "../src/std/text-table.ts";
import type { Figure } from "./proof.ts";

/** What has been started. */
export interface Runner<T> {
  /** One turn: the same work each time. */
  turn(): Promise<T | Problem>;
  stop(): Promise<unknown>;
}

export interface Contender<T> {
  readonly name: string;
  /** A problem of the service that this project makes ends the proof; one of a peer is reported, and the others go on. */
  readonly own: boolean;
  start(): Promise<Runner<T> | Problem>;
}

export interface Plan {
  readonly rounds: number;
  readonly turns: number;
  /** Turns before those that are measured: connections, caches and compilers of all sides. */
  readonly warmup: number;
}

/** Turns of each contender that was there in all rounds. */
export type Rounds<T> = readonly ReadonlyMap<string, readonly T[]>[];

export interface Compared<T> {
  readonly rounds: Rounds<T>;
  readonly failed: ReadonlyMap<string, Problem>;
}

/** `make` is called once in each round. */
export async function inTurns<T>(
  make: () => Promise<readonly Contender<T>[] | Problem>,
  plan: Plan,
): Promise<Compared<T> | Problem> {
  const rounds: Map<string, T[]>[] = [];
  const failed = new Map<string, Problem>();
  for (let round = 0; round < plan.rounds; round += 1) {
    const contenders = await make();
    if (contenders instanceof Problem) return contenders;
    const done = await measuredRound(contenders, plan, failed);
    if (done instanceof Problem) return done;
    rounds.push(done);
  }
  for (const round of rounds) for (const name of failed.keys()) round.delete(name);
  return { rounds, failed };
}

async function measuredRound<T>(
  contenders: readonly Contender<T>[],
  { turns, warmup }: Plan,
  failed: Map<string, Problem>,
): Promise<Map<string, T[]> | Problem> {
  const runners = new Map<Contender<T>, Runner<T>>();
  const done = new Map<string, T[]>();
  try {
    for (const contender of contenders.filter(({ name }) => !failed.has(name))) {
      const runner = await contender.start();
      if (!(runner instanceof Problem)) runners.set(contender, runner);
      else if (contender.own) return runner;
      else failed.set(contender.name, runner);
    }
    for (let turn = -warmup; turn < turns; turn += 1) {
      const order = turn % 2 === 0 ? [...runners] : [...runners].reverse();
      for (const [contender, runner] of order) {
        const shown = await runner.turn();
        if (!(shown instanceof Problem)) {
          if (turn >= 0) done.set(contender.name, [...(done.get(contender.name) ?? []), shown]);
        } else if (contender.own) return shown;
        else {
          failed.set(contender.name, shown);
          runners.delete(contender);
          await runner.stop();
        }
      }
    }
    return done;
  } finally {
    for (const runner of runners.values()) await runner.stop();
  }
}

/** A figure of one contender: the median over the rounds. */
export function middle<T>(rounds: Rounds<T>, name: string, figure: (turns: readonly T[]) => number): number {
  return median(rounds.map((round) => figure(round.get(name) ?? [])));
}

/** A figure of one over that of the other within a round, so that slow changes of the machine are in both; the median over the rounds. */
export function ratio<T>(
  rounds: Rounds<T>,
  [over, under]: readonly [string, string],
  figure: (turns: readonly T[], round: ReadonlyMap<string, readonly T[]>) => number,
): number {
  return median(rounds.map((round) => figure(round.get(over) ?? [], round) / figure(round.get(under) ?? [], round)));
}

/** A figure that is shown of every contender. */
export interface Column<T> {
  readonly measure: string;
  readonly unit: string;
  readonly of: (turns: readonly T[]) => number;
}

/** Medians over the rounds, as a table with a line for each contender, and as figures. */
export function shownOf<T>(title: string, rounds: Rounds<T>, columns: readonly Column<T>[]) {
  const names = [...(rounds[0]?.keys() ?? [])];
  const head = [title, ...columns.map(({ measure, unit }) => (unit === "1" ? measure : `${measure}, ${unit}`))];
  const lines = names.map((name) => [name, ...columns.map(({ of }) => middle(rounds, name, of).toFixed(2))]);
  const figures = names.flatMap((name) =>
    columns.map(({ measure, unit, of }): Figure => {
      return { measure: `${title}: ${name}, ${measure}`, value: middle(rounds, name, of), unit };
    }),
  );
  return { names, figures, table: table([head, ...lines], ["left", ...columns.map(() => "right" as const)]) };
}
