/** The store on PostgreSQL: the operations of the domains in transactions, those of a robot's path in groups (lane.ts). */
import { EXIT, Problem } from "../../error/problem.ts";
import { LIMITS } from "../../limits.ts";
import { type Clock, sleep, systemClock } from "../../std/clock.ts";
import { type Domains, type Hot, type Listed, type Run, slicesOf } from "../domain.ts";
import { first, type Steps } from "../steps.ts";
import { StoreDown, type StoreOf } from "../store.ts";
import { functionsOf } from "./functions.ts";
import { Lane } from "./lane.ts";
import { Lanes } from "./lanes.ts";
import { migratePostgres, postgresState } from "./migrate.ts";
import { Pool, Unanswered } from "./pool.ts";
import { Waiting } from "./waiting.ts";

/** Connects, migrates, and opens; the address never stands in a message, because a password stands in it. */
export async function openPostgresStore<D extends Domains>(
  domains: D,
  url: string,
  clock: Clock = systemClock,
): Promise<StoreOf<D> | Problem> {
  const pool = new Pool(url, clock);
  const functions = functionsOf(domains);
  const migrated = await pool.transaction(() => migratePostgres(domains, functions), "read write", LIMITS.storeLongMs);
  if (migrated === undefined) return postgresStore(domains, pool, functions.apply, clock);
  await pool.close();
  if (migrated instanceof Unanswered) return new Problem(unusable(migrated), EXIT.failed);
  return new Problem(`the database of DATABASE_URL cannot be used: ${migrated}`, EXIT.failed);
}

/** A look at the database for `tendon doctor`; changes nothing. */
export async function lookAtPostgres(
  domains: Domains,
  url: string,
  clock: Clock = systemClock,
): Promise<"absent" | "whole" | Problem> {
  const pool = new Pool(url, clock);
  const found = await pool.read(() => postgresState(domains));
  await pool.close();
  if (found instanceof Unanswered) return new Problem(unusable(found));
  if (typeof found === "string") return found;
  return new Problem(`the database of DATABASE_URL cannot be used: ${found.newer}`);
}

function unusable({ reason }: Unanswered): string {
  return `the PostgreSQL server of DATABASE_URL cannot be used (${reason}); is it running, and is the address right?`;
}

function postgresStore<D extends Domains>(domains: D, pool: Pool, apply: string, clock: Clock): StoreOf<D> {
  let open = true;
  const closed = new StoreDown("the store is closed");
  const lanes = (durable: boolean) => new Lanes(LIMITS.storeLanes, () => new Lane(pool, clock, apply, durable));
  const quick = lanes(false);
  const durable = lanes(true);
  /** Again, while there is time: every operation can be repeated. `ms`: the longest that somebody waits for one. */
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
  const grouped = <A, R>({ key, durable: kept }: Listed<A, R>, { order }: Hot<A>) => {
    const group = kept ? durable : quick;
    return async (argument: A): Promise<R | StoreDown> => {
      if (!open) return closed;
      // The function says what the steps say, a text; one test file runs both.
      return (await group.write({ order: key, ...order(argument) })) as R | StoreDown;
    };
  };
  const read: Run =
    ({ steps, snapshot }) =>
    (argument) =>
      snapshot
        ? until(
            () => pool.transaction(() => steps(argument), "repeatable read read only", LIMITS.storeLongMs),
            LIMITS.storeLongMs,
          )
        : until(() => pool.read(() => steps(argument)));
  const write: Run = (operation) =>
    operation.hot
      ? grouped(operation, operation.hot)
      : (argument) => until(() => pool.transaction(() => operation.steps(argument), "read write"));
  return {
    ...slicesOf(domains, read, write),
    exclusive: false,
    ping: async () => {
      const replays = await until(() => pool.read(isStandby));
      if (replays instanceof StoreDown) return replays;
      return replays ? new StoreDown("the database server only replays the log of another one") : undefined;
    },
    close: async () => {
      if (!open) return;
      open = false;
      await pool.close();
    },
  };
}

function* isStandby(): Steps<boolean> {
  const row = yield* first<{ standby: boolean }>("SELECT pg_is_in_recovery() AS standby");
  return row?.standby === true;
}
