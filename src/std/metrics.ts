/** Counters, gauges and quantiles in Prometheus text form. */

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  /** Of the name, where it is not the family's own. */
  readonly suffix?: string;
  readonly labels?: Labels;
  readonly value: number;
}

/** A counter with labels; each distinct set of labels is one time series, so label values come from closed lists. */
export class Counter {
  private readonly series = new Map<string, { labels: Labels; value: number }>();

  add(labels: Labels): void {
    const key = Object.values(labels).join("\n");
    const known = this.series.get(key);
    if (known) known.value += 1;
    else this.series.set(key, { labels, value: 1 });
  }

  samples(): readonly Sample[] {
    return [...this.series.values()];
  }
}

const QUANTILES = [0.5, 0.99, 1] as const;

/** Quantiles of the last values, exact; takes no memory while it runs. */
export class Recent {
  private readonly values: Float64Array;
  private count = 0;
  private sum = 0;

  constructor(size = 1024) {
    this.values = new Float64Array(size);
  }

  add(value: number): void {
    this.values[this.count % this.values.length] = value;
    this.count += 1;
    this.sum += value;
  }

  /** The samples of a summary, each with `labels`. */
  samples(labels: Labels): readonly Sample[] {
    const sorted = this.values.slice(0, Math.min(this.count, this.values.length)).sort();
    const at = (quantile: number) => sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? Number.NaN;
    return [
      ...QUANTILES.map((quantile) => ({ labels: { ...labels, quantile: String(quantile) }, value: at(quantile) })),
      { suffix: "_sum", labels, value: this.sum },
      { suffix: "_count", labels, value: this.count },
    ];
  }
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "summary";
  readonly samples: readonly Sample[];
}

/** The exposition text of `families`. */
export function exposition(families: readonly Family[]): string {
  let text = "";
  for (const family of families) {
    text += `# HELP ${family.name} ${family.help}\n# TYPE ${family.name} ${family.type}\n`;
    for (const { suffix = "", labels = {}, value } of family.samples) {
      text += `${family.name}${suffix}${labelText(labels)} ${value}\n`;
    }
  }
  return text;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
