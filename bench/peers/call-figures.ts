/** The gateways' figures: what each adds to the provider alone, and tendon's over theirs. */
import { median } from "../../src/measure/stats.ts";
import { table } from "../../src/std/text-table.ts";
import type { Figure } from "../proof.ts";
import { type CallTurn, OWN, PLAIN_CONNECTIONS, PROVIDER, STREAM_CONNECTIONS } from "./calls.ts";
import { GATEWAYS } from "./gateways.ts";
import { middle, type Rounds, ratio } from "./in-turns.ts";

/** Asked for: tendon's over the gateway's. */
const LIMIT = { added: 0.333, perSecondLeast: 4 } as const;
/** The one that is compiled, too. */
const LIMIT_TENSORZERO = { added: 1, perSecondLeast: 1 } as const;

type Of = (turns: readonly CallTurn[]) => number;

const plainMs: Of = (turns) => median(turns.flatMap((turn) => [...turn.plainMs]));
const firstMs: Of = (turns) => median(turns.flatMap((turn) => [...turn.firstMs]));
const callsPerSecond: Of = (turns) => median(turns.map((turn) => turn.callsPerSecond));
const streamsPerSecond: Of = (turns) => median(turns.map((turn) => turn.streamsPerSecond));
const processorMs: Of = (turns) => median(turns.map((turn) => turn.processorMs));

const COLUMNS: readonly [string, string, Of][] = [
  ["plain call, p50", "ms", plainMs],
  ["first token of a stream, p50", "ms", firstMs],
  [`plain calls a second, ${PLAIN_CONNECTIONS} connections`, "1", callsPerSecond],
  [`streams a second, ${STREAM_CONNECTIONS} connections`, "1", streamsPerSecond],
  ["processor time of its process for a plain call", "ms", processorMs],
];

/** Beyond the provider alone, within a round. */
function added(of: Of) {
  return (turns: readonly CallTurn[], round: ReadonlyMap<string, readonly CallTurn[]>): number =>
    of(turns) - of(round.get(PROVIDER) ?? []);
}

export function callFigures(rounds: Rounds<CallTurn>): Figure[] {
  const names = namesIn(rounds);
  const shown = names.flatMap((name) =>
    COLUMNS.map(([measure, unit, of]) => ({ measure: `${name}: ${measure}`, value: middle(rounds, name, of), unit })),
  );
  return [...shown, ...names.filter(isGateway).flatMap((name) => ratios(rounds, name))];
}

function ratios(rounds: Rounds<CallTurn>, name: string): Figure[] {
  const { added: limit, perSecondLeast: least } = name === GATEWAYS.tensorzero.title ? LIMIT_TENSORZERO : LIMIT;
  const pair = [OWN, name] as const;
  const measure = `${OWN} over ${name}`;
  return [
    { measure: `${measure}, added to a plain call, p50`, value: ratio(rounds, pair, added(plainMs)), unit: "1", limit },
    {
      measure: `${measure}, added to a first token, p50`,
      value: ratio(rounds, pair, added(firstMs)),
      unit: "1",
      limit,
    },
    { measure: `${measure}, plain calls a second`, value: ratio(rounds, pair, callsPerSecond), unit: "1", least },
    { measure: `${measure}, streams a second`, value: ratio(rounds, pair, streamsPerSecond), unit: "1", least },
  ];
}

/** One line a process; medians over the rounds. */
export function callTable(rounds: Rounds<CallTurn>): string {
  const head = ["", "plain ms", "added", "first token ms", "added", "calls/s", "streams/s", "processor ms a call"];
  const lines = namesIn(rounds).map((name) => {
    const cell = (of: Of, digits: number) => middle(rounds, name, of).toFixed(digits);
    const beyond = (of: Of) =>
      name === PROVIDER ? "" : (middle(rounds, name, of) - middle(rounds, PROVIDER, of)).toFixed(2);
    return [
      ...[name, cell(plainMs, 2), beyond(plainMs), cell(firstMs, 2), beyond(firstMs)],
      ...[cell(callsPerSecond, 0), cell(streamsPerSecond, 0), cell(processorMs, 2)],
    ];
  });
  return table([head, ...lines], ["left", ...head.slice(1).map(() => "right" as const)]);
}

function isGateway(name: string): boolean {
  return name !== PROVIDER && name !== OWN;
}

function namesIn(rounds: Rounds<CallTurn>): string[] {
  return [...(rounds[0]?.keys() ?? [])];
}
