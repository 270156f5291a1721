/** The parts of every random history: its trace, the choices of its seed, what is sent in it, and how often each outcome was met. */
import { present } from "../../src/std/assert.ts";
import { RandomStream } from "../../src/std/random.ts";

/** Same seed, same choices. */
export class Seeded {
  readonly trace: string[] = [];
  private readonly random: RandomStream;

  constructor(seed: string) {
    this.random = new RandomStream(seed);
  }

  note(text: string): void {
    this.trace.push(text);
  }

  below(bound: number): number {
    return this.random.word() % bound;
  }

  pick<T>(items: readonly T[]): T {
    return present(items[this.below(items.length)], "an item");
  }
}

/** Runs a history; the error of a broken one has its whole trace. `replay`: the words that name it to replay.ts. */
export async function traced<H extends Seeded & { run(): Promise<void> }>(history: H, replay: string): Promise<H> {
  try {
    await history.run();
    return history;
  } catch (error) {
    const trace = history.trace.map((line) => `  ${line}`).join("\n");
    throw new Error(`${(error as Error).message}\n${trace}\nreplay it with: bun test/sim/replay.ts ${replay}`);
  }
}

/** A request and what became of it. */
export interface Sent {
  readonly index: number;
  /** Terminal replies. */
  readonly replies: readonly unknown[];
  /** Its process was killed, or its client has left: no reply is owed. */
  excused: boolean;
}

/** Requests to which a reply is owed. */
export function owed<S extends Sent>(sent: readonly S[]): S[] {
  return sent.filter(({ replies, excused }) => replies.length === 0 && !excused);
}

/** Outcomes, with how often each was met. */
export class Counts {
  readonly counts: Map<string, number>;

  constructor(expected: readonly string[]) {
    this.counts = new Map(expected.map((name) => [name, 0]));
  }

  /** Outcomes that no history has met. */
  get missing(): string[] {
    return [...this.counts].filter(([, count]) => count === 0).map(([name]) => name);
  }

  protected count(name: string, more = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + more);
  }
}
