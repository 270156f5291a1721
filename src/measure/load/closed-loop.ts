/**
 * Closed loop: each robot sends its next observation once its last one is answered. It shows what a service can do, and hides what
 * waiting costs: while the service stands still nobody asks it.
 */

import { type Clock, sleep } from "../../std/clock.ts";
import type { Problem } from "../../std/problem.ts";
import type { Sender } from "./robots.ts";
import { type LoadFigures, Tally } from "./tally.ts";

/** A robot whose request was refused waits so long before it asks again. */
export const REFUSED_PAUSE_MS = 100;

interface ClosedLoad {
  readonly clock: Clock;
  readonly robots: number;
  /** New observations are sent for so long. */
  readonly seconds: number;
  readonly sender: Sender;
}

export async function closedLoop({ clock, robots, seconds, sender }: ClosedLoad): Promise<LoadFigures | Problem> {
  const fromMs = clock.monotonicMs();
  const toMs = fromMs + seconds * 1000;
  const tally = new Tally(fromMs);
  const work = async (robot: number): Promise<void> => {
    for (;;) {
      const sentMs = clock.monotonicMs();
      if (sentMs >= toMs) return;
      tally.sent(sentMs, sentMs);
      const refusal = await sender.send(robot);
      tally.answered(sentMs, clock.monotonicMs(), refusal);
      if (refusal !== undefined) await sleep(clock, REFUSED_PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: robots }, (_, robot) => work(robot)));
  return tally.figures(seconds);
}
