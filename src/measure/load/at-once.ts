/** Load after silence: all robots send one observation at the same moment. */

import { type Clock, sleep } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import type { Sender } from "./robots.ts";
import { type LoadFigures, Tally } from "./tally.ts";

interface BurstLoad {
  readonly clock: Clock;
  readonly robots: number;
  /** Nothing is sent for so long before each burst. */
  readonly silenceMs: number;
  readonly bursts: number;
  readonly sender: Sender;
}

export interface BurstFigures {
  /** Over all bursts: from the moment of the burst until each chunk was read. */
  readonly load: LoadFigures;
  /** Of each burst, from its moment until its first answer and until its last one. */
  readonly firstMs: readonly number[];
  readonly lastMs: readonly number[];
}

export async function atOnce(load: BurstLoad): Promise<BurstFigures | Problem> {
  const { clock, robots, silenceMs, bursts, sender } = load;
  const [firstMs, lastMs]: [number[], number[]] = [[], []];
  const tally = new Tally(clock.monotonicMs());
  for (let burst = 0; burst < bursts; burst += 1) {
    await sleep(clock, silenceMs);
    const momentMs = clock.monotonicMs();
    const answeredMs = await Promise.all(
      Array.from({ length: robots }, async (_, robot) => {
        tally.sent(momentMs, clock.monotonicMs());
        const refusal = await sender.send(robot);
        const nowMs = clock.monotonicMs();
        tally.answered(momentMs, nowMs, refusal);
        return nowMs - momentMs;
      }),
    );
    firstMs.push(Math.min(...answeredMs));
    lastMs.push(Math.max(...answeredMs));
  }
  const figures = tally.figures(lastMs.reduce((sum, ms) => sum + ms, 0) / 1000);
  return figures instanceof Problem ? figures : { load: figures, firstMs, lastMs };
}
