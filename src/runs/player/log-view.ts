/** The visible part of the log: the traces of a span of time, and the observation under the cursor. */
import type { Frames } from "./cameras.ts";
import { type DueRow, dueAt, LogProblem, type Observation } from "./log-lines.ts";
import { Newest } from "./newest.ts";
import { find, make } from "./page.ts";
import type { RunLog } from "./run-log.ts";
import { Traces } from "./traces.ts";
import { clockText, msText } from "./words.ts";

/** The position of the cursor in a new window. While the run plays, most of the window lies ahead. */
const CURSOR_SHARE = { playing: 0.05, seeking: 0.5 } as const;

export class LogView {
  readonly #traces: Traces;
  readonly #window = find("window", HTMLSelectElement);
  readonly #sampled = find("sampled", HTMLElement);
  readonly #readout = find("readout", HTMLElement);
  readonly #cursor: Newest<number>;
  readonly #stretch: Newest<readonly [number, number]>;
  #shown: readonly [number, number] = [0, 0];
  #length = 0;
  #t = 0;

  constructor(
    private readonly log: RunLog,
    private readonly frames: Frames,
    seek: (t: number) => void,
    private readonly say: (problem: string) => void,
  ) {
    this.#traces = new Traces(log.head, find("joints", HTMLElement), find("span", HTMLElement), seek);
    const failed = (error: unknown) => this.#failed(error);
    this.#cursor = new Newest((t) => this.#row(t), failed);
    this.#stretch = new Newest((window) => this.#draw(window), failed);
    this.#window.addEventListener("change", () => this.#move(this.#t, false, true));
    for (const part of ["row-section", "trace-section"]) find(part, HTMLElement).hidden = false;
  }

  lengthen(seconds: number): void {
    this.#length = seconds;
    this.#move(this.#t, false, this.#window.value === "all");
  }

  show(t: number, playing: boolean): void {
    this.#t = t;
    this.#move(t, playing, false);
    this.#traces.cursor(t);
    this.#cursor.ask(t);
  }

  /** The window of the traces follows the cursor. */
  #move(t: number, playing: boolean, anew: boolean): void {
    const [from, to] = this.#shown;
    const seconds = this.#window.value === "all" ? this.#length : Math.min(Number(this.#window.value), this.#length);
    if (!anew && to > from && t >= from && t <= to) return;
    const share = playing ? CURSOR_SHARE.playing : CURSOR_SHARE.seeking;
    const start = Math.max(0, Math.min(t - seconds * share, this.#length - seconds));
    this.#shown = [start, start + seconds];
    this.#traces.window(start, start + seconds);
    this.#traces.cursor(this.#t);
    this.#stretch.ask(this.#shown);
  }

  async #draw([from, to]: readonly [number, number]): Promise<void> {
    await this.log.between(
      from,
      to,
      (stretch) => {
        this.#traces.show(stretch);
        this.#sampled.hidden = stretch.whole;
        this.#sampled.textContent = `Drawn from ${stretch.lines.length} observations at even distances; choose a shorter window to see all.`;
      },
      () => !this.#stretch.outdated,
    );
    const { broken } = this.log;
    if (broken > 0) this.say(`The log has lines that are no observations (${broken} so far): they are left out.`);
  }

  async #row(t: number): Promise<void> {
    const one = await this.log.at(t);
    if (one === undefined) return;
    const due = dueAt(await this.log.leadingTo(one, t), t, this.log.head.dt);
    this.#traces.values(one, due);
    showReadout(this.#readout, one, due);
    this.#readout.dataset.t = String(t);
    if (!this.frames.any) return;
    this.frames.show(one, [await this.log.after(one), await this.log.before(one)]);
  }

  #failed(error: unknown): void {
    if (!(error instanceof LogProblem)) throw error;
    this.say(`The log cannot be read here: ${error.message}.`);
  }
}

function showReadout(place: HTMLElement, one: Observation, due: DueRow | undefined): void {
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
