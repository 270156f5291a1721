/**
 * Connections to PostgreSQL for one kind of work. A statement has its outcome within its time, whatever happens to the server. After
 * a longer silence the next statements get new connections, while those under way have the rest of their time on the old ones.
 * After a broken connection all are replaced at once: postgres.js would keep what it had yet to send on it in front of everything
 * that it sends later.
 */
import postgres from "postgres";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { driveLater, type Statement, type Steps } from "../steps.ts";

/** Every integer is a bigint, as from SQLite. */
const TYPES = {
  bigint: { to: 20, from: [20], parse: (text: string) => BigInt(text), serialize: (value: bigint) => value.toString() },
};

/**
 * The server's own timeouts, in ms, shorter than ours, so that a statement that it ends does not cost the connection. A node that
 * vanished within a transaction would otherwise keep its locks for as long as TCP keeps its connection.
 */
const TIMEOUTS = {
  statement_timeout: LIMITS.storeStatementMs,
  idle_in_transaction_session_timeout: LIMITS.storeStatementMs,
  lock_timeout: LIMITS.storeLockMs,
};

/** Whatever is answered to somebody is on the disk first; a default of the server or of the role must not change that. */
const DURABLE = { synchronous_commit: "on" };

/** `close` ends the connections of the moment; the types of postgres.js lack it. */
type Sql = postgres.Sql<{ bigint: bigint }> & { close(): Promise<void> };

/**
 * What the server refused: `order`, the statement itself, which it would refuse again; `lock`, another transaction holds one;
 * `standby`, the server only replays the log of another one.
 */
type Fault = "order" | "lock" | "standby";

/** Why an attempt failed. `sent`: the server may have done it all the same. */
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

  /** The steps as one transaction; steps that only read see one state of the database. `ms`: the time that it may take. */
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
          // A number of our own: SET takes no parameters.
          const patience = ms === LIMITS.storeAnswerMs ? [] : Object.keys(TIMEOUTS);
          for (const name of patience) await tx.unsafe(`SET LOCAL ${name} = ${ms}`);
          return { value: await driveLater(steps(), (statement) => execute(tx, statement)) };
        } catch (error) {
          if (!isBroken(error)) throw error;
          // To throw here makes postgres.js roll back, which on a broken connection ends in an uncaught error.
          broken.reject(error);
          return await new Promise<never>(() => {});
        }
      });
      return (await Promise.race([done, broken.promise])).value;
    }, ms);
  }

  /** The steps one after another, each seeing the state of its moment; for those that only read. */
  read<T>(steps: () => Steps<T>): Promise<T | Unanswered> {
    return this.attempt((sql) => driveLater(steps(), (statement) => execute(sql, statement)));
  }

  /** One statement. */
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

  /** New connections for what comes next. When one is broken, the others are no better; beside a late one they may be good. */
  private renew(useless: Sql, why: "late" | "broken"): void {
    if (this.closed) return;
    if (this.sql === useless) {
      this.sql = this.connect();
      this.old.add(useless);
      this.options.lost?.();
      // Until then every statement on it has had its time.
      if (why === "late") this.clock.after(LIMITS.storeAnswerMs, () => this.end(useless));
    }
    if (why === "broken") this.end(useless);
  }

  private end(useless: Sql): void {
    if (!this.old.delete(useless)) return;
    useless.end({ timeout: 0 }).catch(() => {});
    // postgres.js forgets a connection that it was opening at that moment: it would stay open, and count at the server, for good.
    // After the time for connecting it is open or given up; a second close finds it.
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

/** SQLSTATEs: the server ends the connection, perhaps behind a commit, or says itself that it cannot tell. */
const ENDING = /^(08...|57P0[12]|40003)$/;

/** What postgres.js throws; an error that the server has sent has a severity, and its code is an SQLSTATE. */
interface DriverError {
  readonly code?: string;
  readonly message?: string;
  readonly severity?: string;
}

/** Whether the connection cannot be used any more. One that was refused is tried again by postgres.js. */
function isBroken(error: unknown): boolean {
  const { code, severity } = error as DriverError;
  if (code === undefined) return false;
  if (severity !== undefined) return ENDING.test(code);
  return code === "CONNECT_TIMEOUT" || !UNCONNECTED.test(code);
}

/** Only a refusal of the server, and a connection that was never made, say that the statement is not done. */
export function unanswered(error: unknown): Unanswered {
  const { code = "error", message = String(error), severity } = error as DriverError;
  const fault = severity === undefined ? undefined : FAULTS.find(([states]) => states.test(code))?.[1];
  const refused = severity === undefined ? UNCONNECTED.test(code) : !ENDING.test(code);
  return new Unanswered(`${code}: ${message}`, !refused, fault);
}

/** SQLSTATEs: data, constraints and texts of ours that are wrong; lock_not_available; read_only, and `BEGIN READ WRITE` on a standby. */
const FAULTS: readonly (readonly [RegExp, Fault])[] = [
  [/^(22|23|42)[0-9A-Z]{3}$/, "order"],
  [/^55P03$/, "lock"],
  [/^(25006|0A000)$/, "standby"],
];
