/** The robots' figures: what each server showed, and tendon's over those of the peer with the same way over the wire. */
import { type Summary, summary } from "../../src/measure/stats.ts";
import { table } from "../../src/std/text-table.ts";
import type { Figure } from "../proof.ts";
import { middle, type Rounds, ratio } from "./in-turns.ts";
import { type Driven, type Model, PAIRS, type Turn } from "./robots.ts";

/** Asked for: tendon's over the peer's. */
const LIMITS: Readonly<Record<Model, { p50: number; crowdP99?: number; crowdPerSecondLeast?: number }>> = {
  none: { p50: 0.333, crowdP99: 0.25, crowdPerSecondLeast: 4 },
  bundle: { p50: 0.6 },
};
const TITLES: Readonly<Record<Model, string>> = { none: "rows that cost nothing", bundle: "the same bundle" };

type Of = (turns: readonly Turn[]) => number;

const alone = (turns: readonly Turn[]): Driven[] => turns.map((turn) => turn.alone);
const crowd = (turns: readonly Turn[]): Driven[] => turns.flatMap((turn) => turn.crowd ?? []);
const times = (driven: readonly Driven[]): Summary => summary(driven.flatMap(({ ms }) => [...ms]));
const count = (driven: readonly Driven[]): number => driven.reduce((sum, { ms }) => sum + ms.length, 0);
const total = (driven: readonly Driven[], of: (one: Driven) => number): number =>
  driven.reduce((sum, one) => sum + of(one), 0);

const p50: Of = (turns) => times(alone(turns)).p50;
const p99: Of = (turns) => times(alone(turns)).p99;
const crowdP99: Of = (turns) => times(crowd(turns)).p99;
const crowdPerSecond: Of = (turns) => count(crowd(turns)) / total(crowd(turns), ({ seconds }) => seconds);
const processorMs: Of = (turns) => total(alone(turns), (one) => one.processorMs) / count(alone(turns));

export function robotFigures(rounds: Rounds<Turn>, model: Model, robots: number): Figure[] {
  const names = namesIn(rounds);
  const title = TITLES[model];
  const shown = names.flatMap((name): Figure[] => [
    { measure: `${title}: ${name}, 1 robot, p50`, value: middle(rounds, name, p50), unit: "ms" },
    { measure: `${title}: ${name}, 1 robot, p99`, value: middle(rounds, name, p99), unit: "ms" },
    {
      measure: `${title}: ${name}, processor time of its process for a request`,
      value: middle(rounds, name, processorMs),
      unit: "ms",
    },
    ...(robots > 1 ? crowdFigures(rounds, name, `${title}: ${name}, ${robots} robots`) : []),
  ]);
  const pairs = PAIRS.filter(({ peer }) => names.includes(peer));
  return [...shown, ...pairs.flatMap((pair) => ratios(rounds, pair, model, robots))];
}

function crowdFigures(rounds: Rounds<Turn>, name: string, measure: string): Figure[] {
  return [
    { measure: `${measure}, p99`, value: middle(rounds, name, crowdP99), unit: "ms" },
    { measure: `${measure}, requests a second`, value: middle(rounds, name, crowdPerSecond), unit: "1" },
  ];
}

function ratios(rounds: Rounds<Turn>, pair: (typeof PAIRS)[number], model: Model, robots: number): Figure[] {
  const { own, peer } = pair;
  const limits = LIMITS[model];
  const over = (of: Of) => ({ value: ratio(rounds, [own, peer], of), unit: "1" });
  const figures: Figure[] = [
    { measure: `${TITLES[model]}: ${own} over ${peer}, 1 robot, p50`, ...over(p50), limit: limits.p50 },
  ];
  if (robots === 1) return figures;
  const measure = `${TITLES[model]}: ${own} over ${peer}, ${robots} robots`;
  const { crowdP99: limit, crowdPerSecondLeast: least } = limits;
  return [
    ...figures,
    { measure: `${measure}, p99`, ...over(crowdP99), ...(limit === undefined ? {} : { limit }) },
    { measure: `${measure}, requests a second`, ...over(crowdPerSecond), ...(least === undefined ? {} : { least }) },
  ];
}

/** One line a server; medians over the rounds. */
export function robotTable(rounds: Rounds<Turn>, model: Model, robots: number): string {
  const columns: [string, Of][] = [
    ["p50 ms", p50],
    ["p99 ms", p99],
    ["processor ms", processorMs],
    ...(robots > 1
      ? ([
          [`p99 ms, ${robots} robots`, crowdP99],
          ["requests/s", crowdPerSecond],
        ] as [string, Of][])
      : []),
  ];
  const head = [TITLES[model], ...columns.map(([name]) => name)];
  const lines = namesIn(rounds).map((name) => [name, ...columns.map(([, of]) => middle(rounds, name, of).toFixed(1))]);
  return table([head, ...lines], ["left", ...columns.map(() => "right" as const)]);
}

function namesIn(rounds: Rounds<Turn>): string[] {
  return [...(rounds[0]?.keys() ?? [])];
}
