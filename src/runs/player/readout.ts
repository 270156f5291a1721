/** The observation under the cursor, as words and numbers. */
import type { DueRow } from "./due.ts";
import type { Observation } from "./log-lines.ts";
import { make } from "./page.ts";
import { clockText, msText } from "./words.ts";

export function showReadout(place: HTMLElement, one: Observation, due: DueRow | undefined): void {
  const facts: [string, string][] = [
    ["Step", one.step === undefined ? "–" : String(one.step)],
    ["Sent at", clockText(one.t)],
    ["Observation", one.observationId ?? "–"],
    ["Action row", due === undefined ? "none due" : `${due.index + 1} of ${due.of}`],
    ["Latency", msText(one.latencyMs)],
    ...one.timingsMs.map(([name, ms]): [string, string] => [name, msText(ms)]),
  ];
  if (one.error !== undefined) facts.push(["Error", one.error]);
  place.replaceChildren(
    ...facts.map(([name, value]) => {
      const shown = make("dd", undefined, value);
      shown.dataset.fact = name;
      return make("div", name === "Error" ? "problem" : undefined, make("dt", undefined, name), shown);
    }),
  );
}
