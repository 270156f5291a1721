/** Counters and gauges in Prometheus text form. No histograms: what they would show, `Server-Timing` and the bench show. */

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
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

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly Sample[];
}

/** The exposition text of `families`. */
export function exposition(families: readonly Family[]): string {
  let text = "";
  for (const family of families) {
    text += `# HELP ${family.name} ${family.help}\n# TYPE ${family.name} ${family.type}\n`;
    for (const sample of family.samples) text += `${family.name}${labelText(sample.labels ?? {})} ${sample.value}\n`;
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
