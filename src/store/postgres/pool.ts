/**
 * Connections to PostgreSQL for one kind of work. A statement has its outcome within its time, even if the server is gone. After a
 * longer silence the next statements get new connections, and those under way have the rest of their time on the old ones. After a
 * broken connection all are replaced at once: postgres.js would put unsent statements of that connection in front of all later ones.
 */
import postgres from "postgres";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { driveLater, type Statement, type Steps } from "../steps.ts";

/** Every integer is a bigint, as in SQLite. */
const TYPES = {
  bigint: { to: 20, from: [20], parse: (text: string) => BigInt(text), serialize: (value: bigint) => value.toString() },
};

/**
 * The server's own timeouts, in ms, shorter than ours, so that a statement that it ends does not cost the connection. A node that
 * vanished within a transaction would otherwise keep its locks until TCP ends its connection.
 */
const TIMEOUTS = {
  statement_timeout: LIMITS.storeStatementMs,
  idle_in_transaction_session_timeout: LIMITS.storeStatementMs,
  lock_timeout: LIMITS.storeLockMs,
};

/** An answer means that the write is on the disk. A default of the server or of the role must not change that. */
const DURABLE = { synchronous_commit: "on" };

/** `close` ends the present connections; the types of postgres.js lack it. */
type Sql = postgres.Sql<{ bigint: bigint }> & { close(): Promise<void> };

/**
 * The server's reason: it would refuse the statement again (`order`), another transaction holds a lock (`lock`), or it only replays
 * the log of another server (`standby`).
 */
type Fault = "order" | "lock" | "standby";

/** The failure of an attempt. `sent`: the server may have done it nevertheless. */
export class Unanswered {
  constructor(
    readonly reason: string,
    readonly sent: boolean,
    readonly fault?: Fault,
  ) {}
}

interface PoolOptions {
  readonly connections: number;
  /** Called when a connection was lost or given up: the address may lead to another server now. */
  readonly lost?: () => void;
}

export class Pool {
  private sql: Sql;
  private closed = false;
  /** Replaced ones, with statements under way. */
  private readonly old = new Set<Sql>();

  constructor(
    private readonly url: string,
    private readonly clock: Clock,
    private readonly options: PoolOptions,
  ) {
    this.sql = this.connect();
  }

  /** Runs the steps as one transaction within `ms`; steps that only read see one state of the database. */
  transaction<T>(
    steps: () => Steps<T>,
    mode: "read write" | "repeatable read read only",
    ms: number = LIMITS.storeAnswerMs,
  ): Promise<T | Unanswered> {
    const options = `isolation level ${mode === "read write" ? "read committed read write" : mode}`;
    return this.attempt(async (sql) => {
      const broken = Promise.withResolvers<never>();
      const done = sql.begin(options, async (tx) => {
        try {
          // SET takes no parameters; `ms` is a number of this program.
          const patience = ms === LIMITS.storeAnswerMs ? [] : Object.keys(TIMEOUTS);
          for (const name of patience) await tx.unsafe(`SET LOCAL ${name} = ${ms}`);
          return { value: await driveLater(steps(), (statement) => execute(tx, statement)) };
        } catch (error) {
          if (!isBroken(error)) throw error;
          // An error here would make postgres.js roll back, which on a broken connection ends in an uncaught error.
          broken.reject(error);
          return await new Promise<never>(() => {});
        }
      });
      return (await Promise.race([done, broken.promise])).value;
    }, ms);
  }

  /** Runs steps that only read. Each statement sees the state of its moment. */
  read<T>(steps: () => Steps<T>): Promise<T | Unanswered> {
    return this.attempt((sql) => driveLater(steps(), (statement) => execute(sql, statement)));
  }

  /** Runs one statement. */
  rows(text: string, values: readonly (string | boolean)[]): Promise<readonly Record<string, unknown>[] | Unanswered> {
    return this.attempt(async (sql) => await sql.unsafe(text, [...values], { prepare: true }));
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const sql of this.old) sql.end({ timeout: 0 }).catch(() => {});
    await this.sql.end({ timeout: LIMITS.storeCloseMs / 1000 });
  }

  private async attempt<T>(work: (sql: Sql) => Promise<T>, ms: number = LIMITS.storeAnswerMs): Promise<T | Unanswered> {
    const { sql } = this;
    const late = Promise.withResolvers<Unanswered>();
    const disarm = this.clock.after(ms, () => {
      late.resolve(new Unanswered(`the database did not answer within ${ms} ms`, true));
      this.renew(sql, "late");
    });
    const done = work(sql).catch((error: unknown) => {
      const failure = unanswered(error);
      // The address may lead to another server by now; existing connections would stay with the old one.
      if (isBroken(error) || failure.fault === "standby") this.renew(sql, "broken");
      return failure;
    });
    try {
      return await Promise.race([done, late.promise]);
    } finally {
      disarm();
    }
  }

  /** Makes new connections for the next statements. Beside a broken connection the others are useless; beside a late one they may work. */
  private renew(useless: Sql, why: "late" | "broken"): void {
    if (this.closed) return;
    if (this.sql === useless) {
      this.sql = this.connect();
      this.old.add(useless);
      this.options.lost?.();
      // After this time no statement on it can still get its answer.
      if (why === "late") this.clock.after(LIMITS.storeAnswerMs, () => this.end(useless));
    }
    if (why === "broken") this.end(useless);
  }

  private end(useless: Sql): void {
    if (!this.old.delete(useless)) return;
    useless.end({ timeout: 0 }).catch(() => {});
    // postgres.js forgets a connection that it was opening at that moment: it would stay open, and count at the server, for good.
    // After the time for connecting it is open or given up, and a second close finds it.
    this.clock.after(2 * LIMITS.storeConnectMs, () => {
      useless.close().catch(() => {});
    });
  }

  private connect(): Sql {
    return postgres(this.url, {
      max: this.options.connections,
      connect_timeout: LIMITS.storeConnectMs / 1000,
      // The service retries by itself; a longer pause would only delay its return.
      backoff: () => LIMITS.storeBackoffMs / 1000,
      max_lifetime: null,
      types: TYPES,
      // No arrays are used, so their types need not be asked for.
      fetch_types: false,
      onnotice: () => {},
      onclose: () => {
        if (!this.closed) this.options.lost?.();
      },
      connection: { application_name: "tendon", ...TIMEOUTS, ...DURABLE },
    }) as Sql;
  }
}

async function execute(sql: Pick<Sql, "unsafe">, { text, values, wants }: Statement): Promise<unknown> {
  const result = await sql.unsafe(text, [...values] as (string | number)[], { prepare: true });
  return wants === "rows" ? result : result.count;
}

/** The connection could not be made, so nothing was sent. */
const UNCONNECTED = /^(CONNECT_TIMEOUT|ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/;

/** SQLSTATEs with which the server ends the connection, perhaps after a commit, or with which it does not know the outcome. */
const ENDING = /^(08...|57P0[12]|40003)$/;

/** An error of postgres.js. One that the server sent has a severity, and its code is an SQLSTATE. */
interface DriverError {
  readonly code?: string;
  readonly message?: string;
  readonly severity?: string;
}

/** True if the connection cannot be used any more. postgres.js itself retries one that was refused. */
function isBroken(error: unknown): boolean {
  const { code, severity } = error as DriverError;
  if (code === undefined) return false;
  if (severity !== undefined) return ENDING.test(code);
  return code === "CONNECT_TIMEOUT" || !UNCONNECTED.test(code);
}

/** Only a refusal of the server or a connection that was never made proves that the statement is not done. */
export function unanswered(error: unknown): Unanswered {
  const { code = "error", message = String(error), severity } = error as DriverError;
  const fault = severity === undefined ? undefined : FAULTS.find(([states]) => states.test(code))?.[1];
  const refused = severity === undefined ? UNCONNECTED.test(code) : !ENDING.test(code);
  return new Unanswered(`${code}: ${message}`, !refused, fault);
}

/** SQLSTATEs of wrong data, constraints and texts; of lock_not_available; of read_only, and `BEGIN READ WRITE` on a standby. */
const FAULTS: readonly (readonly [RegExp, Fault])[] = [
  [/^(22|23|42)[0-9A-Z]{3}$/, "order"],
  [/^55P03$/, "lock"],
  [/^(25006|0A000)$/, "standby"],
];
