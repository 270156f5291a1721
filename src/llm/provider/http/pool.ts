/** The connections to one provider: at most so many, the one that was used last first, whoever waits longest next. */
import type { Clock } from "../../../std/clock.ts";
import { type Address, Connection } from "./connection.ts";

export interface PoolOptions {
  readonly address: Address;
  readonly connectionsMax: number;
  /** Connections that are kept without a request, */
  readonly idleMax: number;
  /** and for how long, unless the server says otherwise. */
  readonly idleMs: number;
  readonly clock: Clock;
}

type Given = (connection: Connection | Error) => void;

/** A server that ends its connection after an answer, though it has not said so, has done it by then. */
const REST_MS = 50;

export class Pool {
  private readonly idle: Connection[] = [];
  /** Whether connections outlive an answer of their kind. Until one is seen to, each rests before it is used again. */
  private readonly outlives = { stream: false, plain: false };
  /** The connections that rest, and what ends it. */
  private readonly resting = new Map<Connection, () => void>();
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
    for (const connection of [...this.idle.splice(0), ...this.resting.keys()]) connection.destroy();
  }

  /** A connection that its server has kept for long may be closed at this moment: then it is not used. */
  private kept(): Connection | undefined {
    const now = this.options.clock.monotonicMs();
    for (;;) {
      const connection = this.idle.pop();
      if (!connection) return undefined;
      if (now - connection.idleSinceMs < (connection.keptMs ?? this.options.idleMs)) return connection;
      connection.destroy();
    }
  }

  private serve(): void {
    const { connectionsMax } = this.options;
    while (this.waiting.length > 0) {
      const [wish] = this.waiting;
      const kept = wish?.fresh ? undefined : this.kept();
      if (wish && kept) {
        this.waiting.shift();
        wish.give(kept);
      } else if (this.open < connectionsMax) this.connect();
      else {
        // An idle one is of no use to who wants a new one, and one that rests to nobody yet.
        const spare = this.idle.shift() ?? [...this.resting.keys()][0];
        if (!spare) return;
        spare.destroy();
      }
    }
  }

  /** For whoever waits longest now. */
  private connect(): void {
    const wish = this.waiting.shift();
    if (!wish) return;
    this.open += 1;
    Connection.connect(this.options.address, (connection, how) => this.moved(connection, how)).then(
      (connection) => wish.give(connection),
      (error: Error) => {
        this.open -= 1;
        wish.give(error);
        this.serve();
      },
    );
  }

  private moved(connection: Connection, how: "idle" | "closed"): void {
    const { clock, idleMax } = this.options;
    const kind = connection.streamed ? "stream" : "plain";
    if (how === "closed") {
      this.open -= 1;
      const at = this.idle.indexOf(connection);
      if (at >= 0) this.idle.splice(at, 1);
      this.resting.get(connection)?.();
      this.resting.delete(connection);
      if (clock.monotonicMs() - connection.idleSinceMs < REST_MS) this.outlives[kind] = false;
    } else if (this.closing || this.idle.length + this.resting.size >= idleMax) {
      connection.destroy();
      return;
    } else {
      connection.idleSinceMs = clock.monotonicMs();
      if (this.outlives[kind]) this.idle.push(connection);
      else
        this.resting.set(
          connection,
          clock.after(REST_MS, () => this.rested(connection, kind)),
        );
    }
    this.serve();
  }

  private rested(connection: Connection, kind: "stream" | "plain"): void {
    this.resting.delete(connection);
    this.outlives[kind] = true;
    this.idle.push(connection);
    this.serve();
  }
}
