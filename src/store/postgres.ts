/** The store on PostgreSQL: the operations of the list in transactions, those of a robot's path in groups (lane.ts). */
import { EXIT, Problem } from "../error/problem.ts";
import { LIMITS } from "../limits.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { schemaForPostgres } from "./dialect.ts";
import { FUNCTIONS, LIGHTER } from "./hot.ts";
import { Lane } from "./lane.ts";
import { Lanes } from "./lanes.ts";
import { newerText } from "./migrations.ts";
import { operationsOf, READS, WRITES } from "./operations.ts";
import { Pool, Unanswered } from "./pool.ts";
import { STEPS } from "./schema.ts";
import { changes, first, type Steps } from "./steps.ts";
import { type Reads, type Store, StoreDown, type Writes } from "./store.ts";
import { Waiting } from "./waiting.ts";

/** Connects, migrates, and opens; the address never stands in a message, because a password stands in it. */
export async function openPostgresStore(url: string, clock: Clock = systemClock): Promise<Store | Problem> {
  const pool = new Pool(url, clock);
  const migrated = await pool.transaction(migrate, "read write", LIMITS.storeLongMs);
  if (migrated === undefined) return postgresStore(pool, clock);
  await pool.close();
  if (migrated instanceof Unanswered) return new Problem(unusable(migrated), EXIT.failed);
  return new Problem(`the database of DATABASE_URL cannot be used: ${migrated}`, EXIT.failed);
}

/** A look at the database for `tendon doctor`; changes nothing. */
export async function lookAtPostgres(url: string, clock: Clock = systemClock): Promise<"absent" | "whole" | Problem> {
  const pool = new Pool(url, clock);
  const found = await pool.read(schemaVersion);
  await pool.close();
  if (found instanceof Unanswered) return new Problem(unusable(found));
  if (found > STEPS.length) return new Problem(`the database of DATABASE_URL cannot be used: ${newerText(found)}`);
  return found === 0 ? "absent" : "whole";
}

function unusable({ reason }: Unanswered): string {
  return `the PostgreSQL server of DATABASE_URL cannot be used (${reason}); is it running, and is the address right?`;
}

/** 0: tendon was never here. */
function* schemaVersion(): Steps<number> {
  const there = yield* first("SELECT 1 FROM pg_tables WHERE tablename = 'tendon_schema'");
  if (!there) return 0;
  const row = yield* first<{ version: bigint }>("SELECT version FROM tendon_schema");
  return Number(row?.version ?? 0n);
}

/** Any number that no other program locks; it keeps nodes that start at once one after the other. */
const MIGRATION_LOCK = 7_364_201_905;

/** Brings the schema up to date, all steps or none; the text says why it cannot. */
function* migrate(): Steps<string | undefined> {
  yield* first("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK);
  yield* changes("CREATE TABLE IF NOT EXISTS tendon_schema (version BIGINT NOT NULL)");
  const row = yield* first<{ version: bigint }>("SELECT version FROM tendon_schema");
  const version = Number(row?.version ?? 0n);
  if (version > STEPS.length) return newerText(version);
  if (!row) yield* changes("INSERT INTO tendon_schema (version) VALUES (0)");
  for (const [index, step] of STEPS.entries()) {
    if (index < version) continue;
    const own = LIGHTER[index + 1] ?? [];
    for (const statement of [...statements(schemaForPostgres(step)), ...own]) yield* changes(statement);
  }
  if (version < STEPS.length) for (const statement of functions()) yield* changes(statement);
  yield* changes("UPDATE tendon_schema SET version = $1", STEPS.length);
  return undefined;
}

function statements(text: string): string[] {
  return text
    .split(/;\s*\n/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}

function functions(): string[] {
  return FUNCTIONS.split(/(?<=END \$\$;)\n/).filter((text) => text.trim() !== "");
}

function postgresStore(pool: Pool, clock: Clock): Store {
  let open = true;
  const closed = new StoreDown("the store is closed");
  const lane = (durable: boolean) => () => new Lane(pool, clock, durable);
  const money = new Lanes(LIMITS.storeLanes, lane(false));
  const chunks = new Lanes(LIMITS.storeLanes, lane(true));
  /** Again, while there is time: every operation can be repeated. `ms`: the longest that somebody waits for one. */
  const until = <T>(ask: () => Promise<T | Unanswered>, ms: number = LIMITS.storeAnswerMs): Promise<T | StoreDown> => {
    const waiting = new Waiting<T>(clock, ms);
    void (async () => {
      const lastTryMs = clock.monotonicMs() + LIMITS.storeAnswerMs - LIMITS.storeBackoffMs;
      while (!waiting.over) {
        if (!open) return waiting.end(closed);
        waiting.tried();
        const answer = await ask();
        if (!(answer instanceof Unanswered)) return waiting.end(answer);
        waiting.failed(answer);
        if (answer.fault === "order" || clock.monotonicMs() >= lastTryMs) return waiting.giveUp();
        await new Promise<void>((done) => void clock.after(LIMITS.storeBackoffMs, done));
      }
    })();
    return waiting.outcome;
  };
  const write = operationsOf<Writes>(
    WRITES,
    (_name, steps) => (argument) => until(() => pool.transaction(() => steps(argument), "read write")),
  );
  const read = operationsOf<Reads>(
    READS,
    (name, steps) => (argument) =>
      name === "ledgerCheck"
        ? until(
            () => pool.transaction(() => steps(argument), "repeatable read read only", LIMITS.storeLongMs),
            LIMITS.storeLongMs,
          )
        : until(() => pool.read(() => steps(argument))),
  );
  const store = {
    ...write,
    ...read,
    hold: (run: unknown) => (open ? money.write("hold", run) : closed),
    release: (run: unknown) => (open ? money.write("release", run) : closed),
    settleChunk: (chunk: unknown) => (open ? chunks.write("settleChunk", chunk) : closed),
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
  // The two lists have every operation of the interface, which their types say.
  return store as unknown as Store;
}

function* isStandby(): Steps<boolean> {
  const row = yield* first<{ standby: boolean }>("SELECT pg_is_in_recovery() AS standby");
  return row?.standby === true;
}
