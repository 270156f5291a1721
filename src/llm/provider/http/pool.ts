/** The connections to one provider: at most so many, the one that was used last first, whoever waits longest next. */
import type { Clock } from "../../../std/clock.ts";
import { type Address, Connection } from "./connection.ts";

export interface PoolOptions {
  readonly address: Address;
  readonly connectionsMax: number;
  /** For one attempt to connect; who waits for a free connection ends that himself. */
  readonly connectMs: number;
  /** Connections that are kept without a request, */
  readonly idleMax: number;
  /** and for how long, unless the server says otherwise. */
  readonly idleMs: number;
  readonly clock: Clock;
}

type Given = (connection: Connection | Error) => void;

/** A server that ends its connection after an answer, though it has not said so, has done it by then. */
const REST_MS = 50;
/** How often idle connections are looked through for those that are too old. */
const SWEEP_MS = 1_000;

export class Pool {
  private readonly idle: Connection[] = [];
  /** Whether connections outlive an answer of their kind. Until one is seen to, each rests before it is used again. */
  private readonly outlives = { stream: false, plain: false };
  /** The connections that rest, and what ends it. */
  private readonly resting = new Map<Connection, () => void>();
  /** Ends the looking through, which goes on while something idles. */
  private sweeping: (() => void) | undefined;
  /** With those that connect. */
  private open = 0;
  private waiting: { readonly give: Given; readonly fresh: boolean }[] = [];
  private closing = false;

  constructor(private readonly options: PoolOptions) {}

  /** `fresh`: one that had no request before. The returned function takes the wish back, before it is given. */
  take(fresh: boolean, give: Given): () => void {
    const kept = fresh ? undefined : this.kept();
    if (kept) {
      give(kept);
      return () => {};
    }
    const wish = { give, fresh };
    this.waiting.push(wish);
    this.serve();
    return () => {
      this.waiting = this.waiting.filter((one) => one !== wish);
    };
  }

  /** Ends all that are idle, and each other one when it becomes so. */
  close(): void {
    this.closing = true;
    for (const connection of [...this.idle, ...this.resting.keys()]) this.drop(connection);
    this.unsweep();
  }

  /** A connection that its server has kept for long may be closed at this moment: then it is not used. */
  private kept(): Connection | undefined {
    for (;;) {
      const connection = this.idle.at(-1);
      if (!connection) return undefined;
      if (this.isOld(connection)) this.drop(connection);
      else return this.idle.pop();
    }
  }

  private isOld({ idleSinceMs, keptMs }: Connection): boolean {
    const { clock, idleMs } = this.options;
    return clock.monotonicMs() - idleSinceMs >= (keptMs ?? idleMs);
  }

  private serve(): void {
    for (;;) {
      const [wish] = this.waiting;
      if (!wish) return;
      const kept = wish.fresh ? undefined : this.kept();
      if (kept) {
        this.waiting.shift();
        wish.give(kept);
      } else if (this.open < this.options.connectionsMax) this.connect();
      else {
        // Of no use to who wants a new one. Anybody else waits for one that rests, since to connect again would take as long.
        const spare = wish.fresh ? (this.idle[0] ?? [...this.resting.keys()][0]) : undefined;
        if (!spare) return;
        this.drop(spare);
      }
    }
  }

  /** For whoever waits longest now. */
  private connect(): void {
    const wish = this.waiting.shift();
    if (!wish) return;
    const { address, clock, connectMs } = this.options;
    this.open += 1;
    Connection.connect(address, { clock, connectMs, moved: (connection, how) => this.moved(connection, how) }).then(
      (connection) => wish.give(connection),
      (error: Error) => {
        this.open -= 1;
        wish.give(error);
        this.serve();
      },
    );
  }

  private moved(connection: Connection, how: "idle" | "closed"): void {
    if (how === "idle") this.returned(connection);
    else {
      this.open -= 1;
      const soon = this.options.clock.monotonicMs() - connection.idleSinceMs < REST_MS;
      // Nobody had it, and the pool forgets what it ends itself: so its server has closed it.
      const endedIdle = this.forget(connection) && connection.used && soon;
      if (endedIdle || connection.refusedAgain) this.outlives[kindOf(connection)] = false;
      this.serve();
    }
  }

  private returned(connection: Connection): void {
    const { clock, idleMax } = this.options;
    const [wish] = this.waiting;
    if (this.closing) connection.destroy();
    else if (!connection.used && wish) {
      // As good as a new one, to anybody.
      this.waiting.shift();
      wish.give(connection);
    } else if (!wish && this.idle.length + this.resting.size >= idleMax) connection.destroy();
    else {
      connection.idleSinceMs = clock.monotonicMs();
      // One without a request shows nothing about what comes after an answer.
      if (!connection.used || this.outlives[kindOf(connection)]) this.keep(connection);
      else {
        const disarm = clock.after(REST_MS, () => this.rested(connection));
        this.resting.set(connection, disarm);
        this.serve();
      }
    }
  }

  private rested(connection: Connection): void {
    this.resting.delete(connection);
    this.outlives[kindOf(connection)] = true;
    this.keep(connection);
  }

  private keep(connection: Connection): void {
    this.idle.push(connection);
    this.serve();
    const [oldest] = this.idle;
    if (oldest && this.idle.length > this.options.idleMax) this.drop(oldest);
    if (this.idle.length > 0) this.sweeping ??= this.options.clock.every(SWEEP_MS, () => this.sweep());
  }

  /** Ends what is too old to be used. */
  private sweep(): void {
    for (const connection of [...this.idle]) if (this.isOld(connection)) this.drop(connection);
    if (this.idle.length === 0) this.unsweep();
  }

  private unsweep(): void {
    this.sweeping?.();
    this.sweeping = undefined;
  }

  private drop(connection: Connection): void {
    this.forget(connection);
    connection.destroy();
  }

  /** Whether it was idle or rested. */
  private forget(connection: Connection): boolean {
    const at = this.idle.indexOf(connection);
    if (at >= 0) this.idle.splice(at, 1);
    this.resting.get(connection)?.();
    return this.resting.delete(connection) || at >= 0;
  }
}

function kindOf({ streamed }: Connection): "stream" | "plain" {
  return streamed ? "stream" : "plain";
}
