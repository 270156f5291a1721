/**
 * Open loop: requests are due at fixed times, whatever the service does. A latency counts from the moment at which its request was due,
 * not from when it was sent, so that a service that stands still is charged with all that should have been asked meanwhile
 * (coordinated omission, Tene).
 *
 * A request that is due takes a robot that waits for nothing; if there is none, one more robot joins.
 */

import type { Clock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import type { Sender } from "./robots.ts";
import { type LoadFigures, Tally } from "./tally.ts";

interface OpenLoad {
  readonly clock: Clock;
  readonly perSecond: number;
  /** Requests are due for so long; then the answers that are under way are waited for. */
  readonly seconds: number;
  readonly sender: Sender;
}

/** The figures, and how many robots it took. */
export async function openLoop(load: OpenLoad): Promise<(LoadFigures & { readonly robots: number }) | Problem> {
  const { clock, perSecond, seconds, sender } = load;
  const due = Math.max(1, Math.floor(perSecond * seconds));
  const beganMs = clock.monotonicMs();
  const tally = new Tally(beganMs);
  const free: number[] = [];
  const underWay: Promise<void>[] = [];
  let robots = 0;
  const send = async (dueMs: number): Promise<void> => {
    const robot = free.pop() ?? robots++;
    tally.sent(dueMs, clock.monotonicMs());
    const refusal = await sender.send(robot);
    tally.answered(dueMs, clock.monotonicMs(), refusal);
    free.push(robot);
  };
  const { promise: allSent, resolve } = Promise.withResolvers<void>();
  const tick = (): void => {
    for (;;) {
      if (underWay.length === due) {
        resolve();
        return;
      }
      const dueMs = beganMs + (underWay.length * 1000) / perSecond;
      const leftMs = dueMs - clock.monotonicMs();
      if (leftMs > 0) {
        // A timer fires a little late rather than early; the next ones are not put off by that.
        clock.after(leftMs, tick);
        return;
      }
      underWay.push(send(dueMs));
    }
  };
  tick();
  await allSent;
  await Promise.all(underWay);
  const figures = tally.figures(seconds);
  return figures instanceof Problem ? figures : { ...figures, robots };
}
