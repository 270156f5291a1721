/** The time of the player in the run. Buttons, the scrubber, keys and the clock move it. */
import { find } from "./page.ts";
import { clockText } from "./words.ts";

export interface Moves {
  /** The run's time has changed, by the person or by playing. */
  readonly moved: (t: number, playing: boolean) => void;
  readonly started: (t: number, speed: number) => void;
  readonly stopped: (t: number) => void;
  /** The time of the longest video. The run's time stands still while it `waits` for data. */
  readonly master: () => { readonly time: number | undefined; readonly waits: boolean };
  /** The time one frame after `t` (1) or before it (-1). */
  readonly step: (t: number, by: 1 | -1) => Promise<number>;
}

export class Transport {
  t = 0;
  #length = 0;
  #playing = false;
  /** The time of the last tick; undefined before the first one. */
  #lastMs: number | undefined;
  readonly #bar = find("transport", HTMLElement);
  readonly #play = find("play", HTMLButtonElement);
  readonly #scrubber = find("scrubber", HTMLInputElement);
  readonly #clock = find("clock", HTMLElement);
  readonly #whole = find("whole", HTMLElement);
  readonly #speed = find("speed", HTMLSelectElement);

  constructor(private readonly moves: Moves) {
    this.#play.addEventListener("click", () => this.#toggle());
    find("frame-back", HTMLButtonElement).addEventListener("click", () => this.#frame(-1));
    find("frame-on", HTMLButtonElement).addEventListener("click", () => this.#frame(1));
    this.#scrubber.addEventListener("input", () => this.seek(Number(this.#scrubber.value)));
    this.#speed.addEventListener("change", () => {
      if (this.#playing) this.moves.started(this.t, this.#rate);
    });
    document.addEventListener("keydown", (event) => this.#key(event));
    this.#bar.hidden = false;
    this.#print();
  }

  get length(): number {
    return this.#length;
  }

  /** The length of the run grows as its parts become known. */
  lengthen(seconds: number): void {
    if (!(seconds > this.#length)) return;
    this.#length = seconds;
    this.#scrubber.max = String(seconds);
    this.#print();
  }

  /** The person moves the run to `t`. */
  seek(t: number): void {
    this.t = Math.max(0, Math.min(t, this.#length));
    this.#print();
    this.moves.moved(this.t, false);
    if (this.#playing) this.moves.started(this.t, this.#rate);
  }

  get #rate(): number {
    return Number(this.#speed.value);
  }

  #toggle(): void {
    if (this.#playing) this.#stop();
    else this.#start();
  }

  #start(): void {
    // At its end the run plays again from the start.
    if (this.t >= this.#length) this.t = 0;
    this.#playing = true;
    this.#play.textContent = "Pause";
    this.#lastMs = undefined;
    this.moves.started(this.t, this.#rate);
    requestAnimationFrame((now) => this.#tick(now));
  }

  #stop(): void {
    this.#playing = false;
    this.#play.textContent = "Play";
    this.moves.stopped(this.t);
    this.#print();
  }

  #tick(now: number): void {
    if (!this.#playing) return;
    const passed = (now - (this.#lastMs ?? now)) / 1000;
    this.#lastMs = now;
    const { time, waits } = this.moves.master();
    if (time !== undefined) this.t = Math.min(time, this.#length);
    else if (!waits) this.t = Math.min(this.t + passed * this.#rate, this.#length);
    this.#print();
    this.moves.moved(this.t, true);
    if (this.t >= this.#length) this.#stop();
    else requestAnimationFrame((at) => this.#tick(at));
  }

  #frame(by: 1 | -1): void {
    if (this.#playing) this.#stop();
    this.moves.step(this.t, by).then(
      (t) => this.seek(t),
      () => this.seek(this.t),
    );
  }

  #key(event: KeyboardEvent): void {
    const { target, key } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || !(target instanceof HTMLElement)) return;
    // Keys in other fields belong to those fields.
    if (target !== this.#scrubber && target.closest("input, select, textarea")) return;
    // The space bar presses the focused element.
    if (key === " " && target.closest("button, summary, a")) return;
    const second = event.shiftKey;
    if (key === " ") this.#toggle();
    else if (key === "ArrowRight" && !second) this.#frame(1);
    else if (key === "ArrowLeft" && !second) this.#frame(-1);
    else if (key === "ArrowRight") this.seek(this.t + 1);
    else if (key === "ArrowLeft") this.seek(this.t - 1);
    else if (key === "Home") this.seek(0);
    else if (key === "End") this.seek(this.#length);
    else return;
    event.preventDefault();
  }

  #print(): void {
    this.#scrubber.value = String(this.t);
    this.#scrubber.setAttribute("aria-valuetext", `${clockText(this.t)} of ${clockText(this.#length)}`);
    this.#clock.textContent = clockText(this.t);
    this.#whole.textContent = clockText(this.#length);
  }
}
