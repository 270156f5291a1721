/**
 * The store of a simulated process: SQLite in a folder in memory, with the code of the real one but for its threads. The writer's steps (a group
 * begins, a sync ends) wait at gates, so that the history decides what lies between them. A kill leaves of the log what was synced, or all.
 */
import {
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ledgerCheck } from "../../src/charge/store/ledger.ts";
import type { LedgerReport } from "../../src/charge/store/records.ts";
import type { ChunkSettlement } from "../../src/robot/store/records.ts";
import { DOMAINS, type Store } from "../../src/service/domains.ts";
import { assert } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import { openCheckpointer, openReader } from "../../src/store/sqlite/connection.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/folder.ts";
import { closeSqlite, onSqlite } from "../../src/store/sqlite/statements.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { type FromWriter, type Pace, type ToWriter, WriterLoop } from "../../src/store/sqlite/writer.ts";
import { drive, rows } from "../../src/store/steps.ts";
import { StoreDown } from "../../src/store/store.ts";

/** Salts and checksums of a log: they are others once the log begins anew. */
const LOG_HEAD_BYTES = 32;

/** How the steps of the writer are let through: at once, or when somebody opens them. */
export interface Steps {
  hold(what: string, step: () => void): void;
}

const AT_ONCE: Steps = { hold: (_, step) => step() };

const MEMORY = "/dev/shm";

function folder(): string {
  return mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "tendon-sim-"));
}

/** What a worker is to the store, without a thread. */
class WriterHere {
  onmessage: ((event: { data: FromWriter }) => void) | undefined;
  onerror: unknown;
  private readonly loop: WriterLoop;

  constructor(
    pace: Pace,
    private readonly isDead: () => boolean,
  ) {
    this.loop = new WriterLoop(DOMAINS, (message) => this.answer(message), pace);
  }

  postMessage(message: ToWriter): void {
    // The clone is what would cross to a thread: an argument that cannot cross is a bug.
    this.loop.receive(structuredClone(message));
  }

  terminate(): void {}

  /** A process that is dead hears of nothing but the end of its files. */
  private answer(message: FromWriter): void {
    if (!this.isDead() || message.kind === "closed") this.onmessage?.({ data: structuredClone(message) });
  }
}

/** One process's way to the store. */
interface Opened {
  readonly store: Store;
  readonly path: string;
  readonly dir: string;
  /** Steps of its writer that wait. */
  readonly waiting: Set<() => void>;
  dead: boolean;
}

/** An empty database, which no history has to make again. */
let template: Uint8Array | undefined;

export class SimStore {
  down = false;
  /** The next chunk is refused. */
  beforeKeep: () => StoreDown | undefined = () => undefined;
  /** Chunks that were kept, in order: told as kept, or found after a kill. */
  readonly kept: ChunkSettlement[] = [];
  /** Kept chunks that no process heard of. */
  readonly untold: ChunkSettlement[] = [];
  /** The queue in which the writer's steps wait. */
  steps: Steps = AT_ONCE;
  private current!: Opened;
  /** Settlements on their way. */
  private asked = new Set<ChunkSettlement>();
  private synced = NOTHING_SYNCED;

  static async open(): Promise<SimStore> {
    const store = new SimStore();
    const dir = folder();
    if (template) writeFileSync(join(dir, DATABASE_FILE), template);
    await store.start(dir);
    if (!template) {
      await store.close();
      const path = join(dir, DATABASE_FILE);
      template = readFileSync(path);
      rmSync(dir, { recursive: true });
      return await SimStore.open();
    }
    return store;
  }

  get accounts(): Store["accounts"] {
    return this.current.store.accounts;
  }

  get charges(): Store["charges"] {
    return this.current.store.charges;
  }

  get base(): Store["base"] {
    return this.current.store.base;
  }

  get robot(): Store["robot"] {
    return this.current.store.robot;
  }

  /** What a process is given. It is answered nothing once it is dead. */
  forProcess(): Store {
    const opened = this.current;
    const silent = new Promise<never>(() => {});
    const of = (slice: object): object => {
      const operations = Object.entries(slice).map(([name, work]) => {
        const run = work as (argument: unknown) => Promise<unknown>;
        return [
          name,
          async (argument: unknown) => {
            if (opened.dead) return await silent;
            if (this.down) return new StoreDown("switched off by the history");
            const outcome = await run(argument);
            return opened.dead ? await silent : outcome;
          },
        ] as const;
      });
      return Object.fromEntries(operations);
    };
    const slices = Object.keys(DOMAINS).map((name) => [name, of(opened.store[name as keyof typeof DOMAINS])]);
    // Each operation has the type that it had.
    const store = { ...opened.store, ...Object.fromEntries(slices) } as Store;
    const settleChunk: Store["robot"]["settleChunk"] = async (chunk) => {
      const refusal = this.beforeKeep();
      if (refusal) return refusal;
      this.asked.add(chunk);
      const outcome = await store.robot.settleChunk(chunk);
      if (outcome === "kept") this.kept.push(chunk);
      this.asked.delete(chunk);
      return outcome;
    };
    return { ...store, exclusive: true, robot: { ...store.robot, settleChunk } };
  }

  /** Copies the log into the database, as its thread does beside the writer. */
  copyLog(): void {
    const db = openCheckpointer(this.current.path);
    db.run("PRAGMA wal_checkpoint(PASSIVE)");
    db.close();
    // It syncs the log first.
    this.synced = syncedOf(this.current.path);
  }

  /** The process is killed, and another one opens what is left; `power`: with it goes what was not synced. */
  async restart(power: boolean): Promise<void> {
    const { current: old } = this;
    old.dead = true;
    const dir = folder();
    const path = join(dir, DATABASE_FILE);
    copyFileSync(old.path, path);
    const log = logOf(old.path);
    const same = isSame(log.subarray(0, LOG_HEAD_BYTES), this.synced.head);
    // A log that has begun anew since was in the database by then, and that was synced.
    const left = same ? this.synced.bytes : 0;
    writeFileSync(`${path}-wal`, power ? log.subarray(0, left) : log);
    // Its files are closed; what that does to them is nothing to the ones that were copied.
    for (const step of old.waiting) step();
    await old.store.close();
    rmSync(old.dir, { recursive: true });
    await this.start(dir);
    const settled = new Set(this.settled());
    for (const chunk of this.asked) {
      if (!settled.has(chunk.chargeId)) continue;
      this.kept.push(chunk);
      this.untold.push(chunk);
    }
    this.asked = new Set();
  }

  /** What the ledger's proof says now. */
  report(): LedgerReport {
    return this.look((execute) => drive(ledgerCheck(), execute));
  }

  /** Ids of all charges that were settled. */
  settled(): readonly string[] {
    const text = "SELECT id FROM charges WHERE settled_at IS NOT NULL";
    return this.look((execute) => drive(rows<{ id: string }>(text), execute)).map(({ id }) => id);
  }

  async close(): Promise<void> {
    this.steps = AT_ONCE;
    const { current } = this;
    for (const step of current.waiting) step();
    await current.store.close();
    if (template) rmSync(current.dir, { recursive: true, force: true });
  }

  private look<T>(work: (execute: ReturnType<typeof onSqlite>) => T): T {
    const db = openReader(this.current.path);
    try {
      return work(onSqlite(db));
    } finally {
      closeSqlite(db);
    }
  }

  private async start(dir: string): Promise<void> {
    const opened = { dir, path: join(dir, DATABASE_FILE), waiting: new Set<() => void>(), dead: false };
    const writer = new WriterHere(this.pace(opened), () => opened.dead);
    const { steps } = this;
    this.steps = AT_ONCE;
    // The store uses only those parts of a worker that `WriterHere` has.
    const thread = () => writer as unknown as Worker;
    const store = await openSqliteStore(DOMAINS, thread, dir, "beside");
    this.steps = steps;
    assert(!(store instanceof Problem), `the store opens: ${store instanceof Problem ? store.message : ""}`);
    this.current = Object.assign(opened, { store });
    this.synced = NOTHING_SYNCED;
  }

  private pace(opened: Omit<Opened, "store">): Pace {
    const { path, waiting } = opened;
    const hold = (what: string, step: () => void) => {
      if (opened.dead) return step();
      const once = () => {
        if (waiting.delete(once)) step();
      };
      waiting.add(once);
      this.steps.hold(what, once);
    };
    return {
      soon: (step) => queueMicrotask(() => hold("group", step)),
      sync: (_, done) => {
        const synced = syncedOf(path);
        hold("sync", () => {
          // A copy since has synced more.
          const older = isSame(synced.head, this.synced.head) && synced.bytes < this.synced.bytes;
          if (!opened.dead && !older) this.synced = synced;
          done(null);
        });
      },
      // The history copies the log when it likes.
      after: () => () => {},
    };
  }
}

/** What of the log is on the disk. */
interface Synced {
  readonly head: Uint8Array;
  readonly bytes: number;
}

const NOTHING_SYNCED: Synced = { head: new Uint8Array(), bytes: 0 };

function syncedOf(path: string): Synced {
  const file = openSync(`${path}-wal`, "r");
  const head = new Uint8Array(LOG_HEAD_BYTES);
  const read = readSync(file, head);
  const bytes = fstatSync(file).size;
  closeSync(file);
  return { head: head.subarray(0, read), bytes };
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

function logOf(path: string): Uint8Array {
  const log = `${path}-wal`;
  return existsSync(log) ? readFileSync(log) : new Uint8Array();
}
