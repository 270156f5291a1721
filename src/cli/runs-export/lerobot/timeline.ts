/** What held at a moment of an episode: the state that the robot last told, and the row that it was to follow. */
import type { EpisodeHead, EpisodeObservation } from "../../../client/episode-log/format.ts";
import { present } from "../../../std/assert.ts";

/** A row that is due exactly now must not be missed by a rounding error of the clock's sums. */
const ROUNDING = 1e-6;

type Chunk = NonNullable<EpisodeObservation["chunk"]>;

export class Timeline {
  private readonly chunks: readonly Chunk[];

  /** At least one observation, and at least one with a chunk. */
  constructor(
    private readonly head: EpisodeHead,
    private readonly observations: readonly EpisodeObservation[],
  ) {
    const chunks = observations.flatMap(({ chunk }) => (chunk === null ? [] : [chunk]));
    this.chunks = chunks.sort((a, b) => a.start - b.start);
  }

  /** Before the first observation its state is the nearest that is known. */
  stateAt(seconds: number): readonly number[] {
    return (lastBefore(this.observations, seconds, ({ t }) => t) ?? present(this.observations[0], "an observation"))
      .state;
  }

  /** A robot stands still before its first row, and after a chunk that nothing followed: the nearest row is what it holds. */
  actionAt(seconds: number): readonly number[] {
    const { start, actions } =
      lastBefore(this.chunks, seconds, (chunk) => chunk.start) ?? present(this.chunks[0], "a chunk");
    const row = Math.floor((seconds - start) / this.head.action.dt + ROUNDING);
    return present(actions[Math.min(Math.max(row, 0), actions.length - 1)], "a row");
  }
}

/** The last item whose time is not after `seconds`; the items are in the order of their times. */
function lastBefore<T>(items: readonly T[], seconds: number, timeOf: (item: T) => number): T | undefined {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeOf(present(items[middle], "an item")) <= seconds + ROUNDING) low = middle + 1;
    else high = middle;
  }
  return items[low - 1];
}
