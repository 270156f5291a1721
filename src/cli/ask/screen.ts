/** What `tendon ask` shows: a spinner while nothing comes, then the answer piece by piece. */
import type { Clock } from "../../std/clock.ts";
import { printableLines } from "../../std/printable.ts";
import { Spinner } from "./spinner.ts";

export interface ScreenOptions {
  readonly clock: Clock;
  /** Takes the answer. */
  readonly print: (text: string) => Promise<void>;
  /** The answer goes to a terminal, which would obey control characters. */
  readonly guarded: boolean;
  /** Takes the spinner; undefined: there is no terminal for one. */
  readonly draw: ((text: string) => void) | undefined;
}

export class Screen {
  private readonly spinner: Spinner | undefined;
  /** The first half of a character whose second half is yet to come. */
  private half = "";
  private last = "\n";

  constructor(private readonly options: ScreenOptions) {
    const { clock, draw } = options;
    this.spinner = draw && new Spinner(clock, "waiting", draw);
  }

  waitingFor(words: string): void {
    if (this.spinner) this.spinner.words = words;
  }

  async piece(text: string): Promise<void> {
    this.spinner?.stop();
    const whole = this.half + text;
    this.half = /[\ud800-\udbff]$/.exec(whole)?.[0] ?? "";
    await this.put(whole.slice(0, whole.length - this.half.length));
  }

  /** Nothing more comes: the next text of a terminal begins on a line of its own. */
  async end(): Promise<void> {
    this.spinner?.stop();
    await this.put(this.half);
    this.half = "";
    if (this.last !== "\n") await this.put("\n");
  }

  private async put(text: string): Promise<void> {
    if (text === "") return;
    this.last = text.slice(-1);
    await this.options.print(this.options.guarded ? printableLines(text) : text);
  }
}
