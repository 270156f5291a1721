/** The figures of `tendon bench llm` for people and programs. */
import type { Histogram } from "../histogram.ts";
import { latencyColumns } from "../load/columns.ts";
import type { Origin } from "../origin.ts";
import { distributionFigure } from "../page/distribution.ts";
import type { Report } from "../report.ts";
import { type Column, tabularReport } from "../tabular.ts";
import { type LlmMeasurement, STREAM } from "./suite.ts";

const QUESTION = "What does the service add to a call of a language model?";

const MEANING = [
  "Direct: to the provider itself, which answers at once and is a thread beside the load generator. Through: the same call through the",
  "service, its ledger on: key, hold, the call, the durable record of the answer. In turns, one call at a time. Plain: an answer in one",
  `piece. Stream: ${STREAM.tokens} tokens, one every ${STREAM.gapMs} ms. First: until the first token was read; the percentiles: until the whole answer was read.`,
  "Added: the difference of the medians to the direct call. The client, the provider and the service share the machine's cores.",
  "Outside the window: the calls that warm all of them up.",
];

export function llmReport(from: Origin, measurements: readonly LlmMeasurement[]): Report {
  const added = (one: LlmMeasurement, of: (one: LlmMeasurement) => Histogram): number => {
    const direct = measurements.find(({ form, path }) => form === one.form && path === "direct");
    return one.path === "direct" || direct === undefined
      ? Number.NaN
      : of(one).percentile(50) - of(direct).percentile(50);
  };
  const columns: readonly Column<LlmMeasurement>[] = [
    { name: "form", title: "form", of: ({ form }) => form },
    { name: "path", title: "path", of: ({ path }) => path },
    { name: "calls", title: "calls", of: ({ whole }) => whole.count },
    { name: "first_p50_ms", title: "first p50 ms", digits: 2, of: ({ first }) => first.percentile(50) },
    { name: "first_p99_ms", title: "first p99 ms", digits: 2, of: ({ first }) => first.percentile(99) },
    { name: "first_added_ms", title: "added", digits: 2, of: (one) => added(one, ({ first }) => first) },
    ...latencyColumns<LlmMeasurement>(({ whole }) => whole),
    { name: "whole_added_ms", title: "added", digits: 2, of: (one) => added(one, ({ whole }) => whole) },
  ];
  const series = measurements.map(({ form, path, first }) => ({
    name: `${form}, ${path}`,
    latency: first,
    dashed: path === "direct",
  }));
  return tabularReport({
    ...{ suite: "llm", question: QUESTION, from, measurements, columns, meaning: MEANING },
    latency: ({ first }) => first,
    pictures: [
      {
        heading: "Until the first token",
        note: "Read upwards from a percentile: so many of the calls had their first token within that time. Direct calls are dashed.",
        content: [distributionFigure("From handing the call to HTTP until its first token was read", series)],
      },
    ],
  });
}
