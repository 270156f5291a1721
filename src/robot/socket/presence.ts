/** Whether the other side of a connection is still there: asked by a ping, answered by a pong or by anything else that it says. */
import type { Clock } from "../../std/clock.ts";

export class Presence {
  /** The question that waits for its answer. */
  private asked: { readonly answer: PromiseWithResolvers<boolean>; readonly disarm: () => void } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ping: () => void,
  ) {}

  /** False when nothing came for `ms`, or the connection has ended meanwhile. Several who ask wait for one answer. */
  ask(ms: number): Promise<boolean> {
    if (!this.asked) {
      this.asked = { answer: Promise.withResolvers(), disarm: this.clock.after(ms, () => this.settle(false)) };
      this.ping();
    }
    return this.asked.answer.promise;
  }

  /** Something came. */
  heard(): void {
    this.settle(true);
  }

  /** The connection has ended. */
  end(): void {
    this.settle(false);
  }

  private settle(isThere: boolean): void {
    const { asked } = this;
    this.asked = undefined;
    asked?.disarm();
    asked?.answer.resolve(isThere);
  }
}
