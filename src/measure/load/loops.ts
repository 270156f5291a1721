/** When robots send their observations: once the last one is answered, or at fixed times. */
import { type Clock, sleep } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
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

/**
 * Closed loop: each robot sends its next observation once its last one is answered. It shows what a service can do, and hides what
 * waiting costs: while the service stands still nobody asks it.
 */
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

interface OpenLoad {
  readonly clock: Clock;
  readonly perSecond: number;
  /** Requests are due for so long; then the answers that are under way are waited for. */
  readonly seconds: number;
  readonly sender: Sender;
}

/**
 * Open loop: requests are due at fixed times, whatever the service does. A latency counts from the moment at which its request was due,
 * not from when it was sent, so that a service that stands still is charged with all that should have been asked meanwhile
 * (coordinated omission, Tene).
 *
 * A request that is due takes a robot that waits for nothing; if there is none, one more robot joins: `robots` of them in the end.
 */
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
