/** What is fuzzed: a piece of code that reads what a stranger sends, and what must hold for whatever that is. */

export interface Target {
  /** The name of its file in `corpus/` too. */
  readonly name: string;
  /** Files of `src/` whose lines guide the search. */
  readonly guides: readonly string[];
  /** Inputs to begin with, besides the kept ones. */
  readonly seeds: readonly (string | Uint8Array)[];
  /** Words that are put into inputs. */
  readonly words: readonly string[];
  /**
   * Throws if something that must hold does not. Returns what came of the input, in a few of our words. An input that leads to new
   * words is kept like one that reaches a new line, because one line can have many conditions.
   */
  run(input: Uint8Array): string | Promise<string>;
}

/** Fails the input. */
export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}
