/** How far two commits are apart, and how much of it may be chance. */
import { percentile } from "../../src/measure/stats.ts";
import type { RandomStream } from "../../src/std/random.ts";

/** What both commits showed in one turn of a round, in the same order. */
export interface Pair<T> {
  readonly base: T;
  readonly changed: T;
}
/** Turns of each round. A round has fresh processes. */
export type Rounds<T> = readonly (readonly Pair<T>[])[];

export interface Ratio {
  readonly base: number;
  readonly changed: number;
  /** changed / base: the median over the rounds. */
  readonly ratio: number;
  /** 95 % bootstrap interval of the ratio. */
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 1000;

/**
 * The ratio of a figure, with the percentile bootstrap's interval (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
 * chapter 13). Rounds are drawn with replacement, then turns within each, since chunks of one turn are not independent.
 */
export function ratioOf<T>(rounds: Rounds<T>, figure: (turns: readonly T[]) => number, random: RandomStream): Ratio {
  const ratios: number[] = [];
  for (let sample = 0; sample < RESAMPLES; sample += 1) {
    const drawn = draw(rounds, random).map((turns) => draw(turns, random));
    ratios.push(middle(drawn.map((turns) => ratioIn(turns, figure))));
  }
  ratios.sort((a, b) => a - b);
  return {
    base: middle(rounds.map((turns) => figure(turns.map(({ base }) => base)))),
    changed: middle(rounds.map((turns) => figure(turns.map(({ changed }) => changed)))),
    ratio: middle(rounds.map((turns) => ratioIn(turns, figure))),
    low: percentile(ratios, 2.5),
    high: percentile(ratios, 97.5),
  };
}

function ratioIn<T>(turns: readonly Pair<T>[], figure: (turns: readonly T[]) => number): number {
  return figure(turns.map(({ changed }) => changed)) / figure(turns.map(({ base }) => base));
}

/** A sample of the same size, drawn with replacement. */
function draw<T>(all: readonly T[], random: RandomStream): T[] {
  return all.map(() => all[Math.floor((random.word() / 2 ** 32) * all.length)] as T);
}

/** The median; of an even number the mean of the two in the middle, so that neither commit is favored. */
function middle(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = sorted.length / 2;
  return ((sorted[Math.ceil(at) - 1] ?? Number.NaN) + (sorted[Math.floor(at)] ?? Number.NaN)) / 2;
}
