/** A load against a service that exists on a clock alone. */
import type { Refusal, Sender } from "../../../src/measure/load/robots.ts";
import { Problem } from "../../../src/std/problem.ts";
import { FakeClock } from "../../std/fake-clock.ts";

/** What a service does with a request that is sent at `sentMs`: after how long it answers, and the code of its error if it refuses. */
type Behaviour = (sentMs: number, robot: number) => { readonly ms: number; readonly code?: string };

export class FakeService implements Sender {
  readonly clock = new FakeClock();
  /** When each request was sent, by whom. */
  readonly requests: { readonly sentMs: number; readonly robot: number }[] = [];
  /** Requests of one robot that were under way together, at most. */
  overlapsMax = 0;
  private readonly busy = new Map<number, number>();

  constructor(private readonly behaviour: Behaviour) {}

  async send(robot: number): Promise<Refusal | undefined> {
    const sentMs = this.clock.monotonicMs();
    this.requests.push({ sentMs, robot });
    this.count(robot, 1);
    const { ms, code } = this.behaviour(sentMs, robot);
    await new Promise<void>((resolve) => this.clock.after(ms, resolve));
    this.count(robot, -1);
    return code === undefined ? undefined : { code, problem: new Problem(`${code}: on purpose`) };
  }

  /** Lets time go on until `outcome` is there. */
  async play<T>(outcome: Promise<T>): Promise<T> {
    let ended = false;
    const watched = outcome.finally(() => {
      ended = true;
    });
    for (let ms = 0; !ended && ms < 100_000; ms += 1) {
      this.clock.advance(1);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    return await watched;
  }

  private count(robot: number, change: number): void {
    const now = (this.busy.get(robot) ?? 0) + change;
    this.busy.set(robot, now);
    this.overlapsMax = Math.max(this.overlapsMax, now);
  }
}
