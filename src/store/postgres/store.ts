/** The store on PostgreSQL: the operations of the domains in transactions, those of a robot's path in groups (lane.ts). */
import { LIMITS } from "../../limits.ts";
import { type Clock, sleep, systemClock } from "../../std/clock.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { type Domains, type Hot, type NamedOperation, type Run, type StoreOf, slicesOf } from "../domain.ts";
import type { Migration } from "../schema.ts";
import { first, type Steps } from "../steps.ts";
import { StoreDown } from "../store.ts";
import { Connections } from "./connections.ts";
import { HighWater, type MarkFile } from "./high-water.ts";
import { functionsOf, migratePostgres, postgresState } from "./migrate.ts";
import { Pool, Unanswered } from "./pool.ts";
import { Waiting } from "./waiting.ts";

interface PostgresOptions {
  readonly clock?: Clock;
  /** The file of the ledger's high-water mark; only a service has one. */
  readonly mark?: MarkFile;
  /** Another schema than that of this version, for tests. */
  readonly migrations?: readonly Migration[];
}

/** Connects, migrates, and opens. No message contains the address, because it contains a password. */
export async function openPostgresStore<D extends Domains>(
  domains: D,
  url: string,
  { clock = systemClock, mark, migrations }: PostgresOptions = {},
): Promise<StoreOf<D> | Problem> {
  const pool = new Pool(url, clock, { connections: 1 });
  const functions = functionsOf(domains);
  const opened = await pool.transaction(
    function* (): Steps<string | undefined> {
      return (yield* notDurable()) ?? (yield* migratePostgres(functions, migrations));
    },
    "read write",
    LIMITS.storeLongMs,
  );
  await pool.close();
  if (opened === undefined) {
    const connections = new Connections(url, clock, functions.apply, () => highWater?.suspect());
    const highWater = mark && new HighWater(connections.reads, clock, mark);
    // The first robot must not wait for connections.
    if (highWater) await Promise.all([connections.warm(), highWater.start()]);
    return postgresStore(domains, { connections, highWater, clock });
  }
  if (opened instanceof Unanswered) return new Problem(unusable(opened), EXIT.failed);
  return new Problem(`the database of DATABASE_URL cannot be used: ${opened}`, EXIT.failed);
}

/** The problem of a connection whose commits are answered before they are on the disk. */
function* notDurable(): Steps<string | undefined> {
  const row = yield* first<{ mode: string }>("SELECT current_setting('synchronous_commit') AS mode");
  if (row?.mode === "on") return undefined;
  return (
    `synchronous_commit is '${row?.mode}' although tendon asks for 'on' when it connects; ` +
    "let the connection pooler between them pass that setting on, or set it there"
  );
}

/** A look at the database for `tendon doctor`; changes nothing. */
export async function lookAtPostgres(url: string): Promise<"absent" | "whole" | Problem> {
  const pool = new Pool(url, systemClock, { connections: 1 });
  const found = await pool.read(postgresState);
  await pool.close();
  if (found instanceof Unanswered) return new Problem(unusable(found));
  if (typeof found === "object") return new Problem(`the database of DATABASE_URL cannot be used: ${found.refusal}`);
  return found === "absent" ? "absent" : "whole";
}

function unusable({ reason }: Unanswered): string {
  return `the PostgreSQL server of DATABASE_URL cannot be used (${reason}); is it running, and is the address right?`;
}

interface Parts {
  readonly connections: Connections;
  readonly highWater: HighWater | undefined;
  readonly clock: Clock;
}

function postgresStore<D extends Domains>(domains: D, { connections, highWater, clock }: Parts): StoreOf<D> {
  let open = true;
  const closed = new StoreDown("the store is closed");
  const { reads, quick, durable } = connections;
  /** Tries again within `ms`, the caller's longest wait: every operation can be repeated. */
  const until = <T>(ask: () => Promise<T | Unanswered>, ms: number = LIMITS.storeAnswerMs): Promise<T | StoreDown> => {
    const waiting = new Waiting<T>(clock, ms);
    const tries = async () => {
      const lastTryMs = clock.monotonicMs() + LIMITS.storeAnswerMs - LIMITS.storeBackoffMs;
      while (!waiting.over) {
        if (!open) return waiting.end(closed);
        waiting.tried();
        const answer = await ask();
        if (!(answer instanceof Unanswered)) return waiting.end(answer);
        waiting.failed(answer);
        if (answer.fault === "order" || clock.monotonicMs() >= lastTryMs) return waiting.giveUp();
        await sleep(clock, LIMITS.storeBackoffMs);
      }
    };
    tries().catch((error: unknown) => waiting.end(new StoreDown(String(error), true)));
    return waiting.outcome;
  };
  const grouped = <A, R>({ key, durable: kept }: NamedOperation<A, R>, { order }: Hot<A>) => {
    const { lanes } = kept ? durable : quick;
    return async (argument: A): Promise<R | StoreDown> => {
      if (!open) return closed;
      // The function's outcome is that of the steps, a text; one test file runs both.
      return (await lanes.write({ order: key, ...order(argument) })) as R | StoreDown;
    };
  };
  const read: Run =
    ({ steps, snapshot }) =>
    (argument) =>
      snapshot
        ? until(
            () => reads.transaction(() => steps(argument), "repeatable read read only", LIMITS.storeLongMs),
            LIMITS.storeLongMs,
          )
        : until(() => reads.read(() => steps(argument)));
  const once: Run = (operation) =>
    operation.hot
      ? grouped(operation, operation.hot)
      : (argument) => {
          const { pool } = operation.durable ? durable : quick;
          return until(() => pool.transaction(() => operation.steps(argument), "read write"));
        };
  const write: Run = (operation) => {
    const ask = once(operation);
    const { booking } = operation;
    if (!highWater || !booking) return ask;
    return async (argument) => {
      const outcome = await ask(argument);
      if (outcome === booking.outcome) highWater.add(booking.transfer(argument));
      return outcome;
    };
  };
  return {
    ...slicesOf(domains, read, write),
    ...(highWater ? { onLedgerChange: (tell) => highWater.onChange(tell) } : {}),
    exclusive: false,
    ping: async () => {
      const replays = await until(() => reads.read(isStandby));
      if (replays instanceof StoreDown) return replays;
      return replays ? new StoreDown("the database server only replays the log of another one") : undefined;
    },
    close: async () => {
      if (!open) return;
      open = false;
      await highWater?.close();
      await connections.close();
    },
  };
}

function* isStandby(): Steps<boolean> {
  const row = yield* first<{ standby: boolean }>("SELECT pg_is_in_recovery() AS standby");
  return row?.standby === true;
}
