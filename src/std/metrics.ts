/** Metrics in Prometheus text form, kept by prom-client. Durations are histograms, which can be added up over nodes. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";

export type { Counter } from "prom-client";

/** The series of a histogram that has one label value. */
export class Durations {
  constructor(
    readonly label: string,
    private readonly series: Histogram.Internal<string>,
  ) {}

  add(ms: number): void {
    this.series.observe(ms);
  }
}

/** One set of metrics. Never prom-client's global registry: a test makes many services in one process. */
export class Metrics {
  private readonly registry = new Registry();

  /** Each distinct set of label values is one time series, so label values must come from closed lists. */
  counter<Label extends string>(name: string, help: string, labels: readonly Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames: labels, registers: [this.registry] });
  }

  /** One series per value of `label`; all of them exist from the start, so that a rate can be taken of the first ones. */
  durations<Value extends string>(
    name: string,
    help: string,
    options: { readonly bucketsMs: readonly number[]; readonly label: string; readonly values: readonly Value[] },
  ): (value: Value) => Durations {
    const { bucketsMs, label, values } = options;
    const shape = { name, help, labelNames: [label], buckets: [...bucketsMs] };
    const histogram = new Histogram({ ...shape, registers: [this.registry] });
    for (const value of values) histogram.zero({ [label]: value });
    return (value) => new Durations(value, histogram.labels(value));
  }

  /** A value that is known now; `total`: one that only grows. */
  reading(type: "gauge" | "total", name: string, help: string, value: number): void {
    const options = { name, help, registers: [this.registry] };
    if (type === "gauge") new Gauge(options).set(value);
    else new Counter(options).inc(value);
  }

  /** The same of each value of a label. */
  readings(
    name: string,
    help: string,
    label: string,
    values: readonly (readonly [value: string, reading: number])[],
  ): void {
    const gauge = new Gauge({ name, help, labelNames: [label], registers: [this.registry] });
    for (const [value, reading] of values) gauge.set({ [label]: value }, reading);
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }
}
