/** A service with real stores of records and of bytes, reached over a real socket, and people who use it. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { keyDigest, keyPublicId, makeKey } from "../../src/account/key.ts";
import { type Drill, Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { type Listener, listen } from "../../src/http/listen.ts";
import { BlobsDown } from "../../src/runs/blob/blobs.ts";
import type { RunBounds } from "../../src/runs/store/records.ts";
import { makeBlobs } from "../../src/service/blobs.ts";
import { build, type Service } from "../../src/service/build.ts";
import type { Store } from "../../src/service/domains.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Problem } from "../../src/std/problem.ts";
import { funded } from "../account/fake-store.ts";
import { ENGINES, type EngineName, type Place, place, startServer, stopServer } from "../store/engines.ts";
import { S3, S3Server } from "./blob/s3-server.ts";
import { Person } from "./person.ts";

export type BlobName = "folder" | "S3";

interface Combination {
  readonly engine: EngineName;
  readonly blobs: BlobName;
}

/** Every store of records with every store of bytes: the title of its tests, and whether they cannot run here. */
export const MATRIX = ENGINES.flatMap(({ name, title, absent }) =>
  (["folder", "S3"] as const).map((blobs) => {
    const s3 = blobs === "S3";
    const combination: Combination = { engine: name, blobs };
    return { ...combination, title: `${title}, ${s3 ? S3.title : blobs}`, absent: absent || (s3 && S3.absent) };
  }),
);

/** Both stores of records, with bytes in a folder. */
export const RECORDS = MATRIX.filter(({ blobs }) => blobs === "folder");

let s3: S3Server | undefined;

/** The servers of a file's tests; to be called in `beforeAll`. */
export async function startServers(...needed: readonly ("PostgreSQL" | "S3")[]): Promise<void> {
  if (needed.includes("PostgreSQL")) await startServer();
  if (needed.includes("S3") && !S3.absent) s3 = await S3Server.start();
}

/** In `afterAll`. */
export async function stopServers(): Promise<void> {
  await stopServer();
  await s3?.[Symbol.asyncDispose]();
}

/** Real timers; the wall clock is ahead by as much as a test says. */
export class AheadClock {
  aheadSeconds = 0;
  readonly monotonicMs = systemClock.monotonicMs;
  readonly after = systemClock.after;
  readonly every = systemClock.every;

  unixMs(): number {
    return systemClock.unixMs() + 1_000 * this.aheadSeconds;
  }
}

/** Those that a test names at the moment. */
class OwnDrills extends Drills {
  readonly names = new Set<Drill>();

  override strikes(name: Drill): boolean {
    return this.names.has(name);
  }
}

export interface StageOptions extends Partial<Combination> {
  readonly bounds?: Partial<RunBounds>;
  /** Another node on the records and the bytes of this one. */
  readonly beside?: RunsStage;
  /** Instead of the place's own folder. */
  readonly dataDir?: string;
  /** Changes what the service is given. */
  readonly store?: (store: Store) => Store;
}

export class RunsStage implements AsyncDisposable {
  private constructor(
    readonly place: Place,
    readonly store: Store,
    readonly service: Service,
    readonly drills: OwnDrills,
    readonly clock: AheadClock,
    readonly dataDir: string,
    readonly logged: string[],
    private readonly listener: Listener,
    private readonly owned: boolean,
    readonly blobs: BlobName,
  ) {}

  static async start(options: StageOptions = {}): Promise<RunsStage> {
    const { engine = "SQLite", beside, blobs = beside?.blobs ?? "folder", bounds } = options;
    const at = beside?.place ?? (await place(engine));
    const store = beside?.store ?? (await at.open());
    const dataDir = options.dataDir ?? at.dir;
    const clock = beside?.clock ?? new AheadClock();
    const where = { dataDir, blobs: blobs === "S3" ? s3?.options({ prefix: at.dir.slice(1) }) : undefined };
    const bytes = makeBlobs(where);
    const staging = beside ? "staging-2" : "staging";
    const down = await bytes.open(join(dataDir, staging));
    if (down instanceof BlobsDown) throw new Error(down.reason);
    const logged: string[] = [];
    const note = (event: string, facts: object = {}) => logged.push(`${event} ${JSON.stringify(facts)}`);
    const drills = new OwnDrills();
    const settings = { chunkMs: 10_000, signUpOpen: false, drills, ...(bounds && { bounds: { runs: bounds } }) };
    const given = options.store?.(store) ?? store;
    const service = build(settings, { clock, log: { info: note, error: note }, store: given, blobs: bytes });
    // The time by which it is ahead has passed for the service, and not for the requests that run.
    Object.assign(service.core.clock, { seenMs: () => clock.unixMs() });
    service.robot.catalog.known = true;
    const listener = listen(publicApp(service.http, service.surfaces), { host: "127.0.0.1", port: 0 });
    if (listener instanceof Problem) throw new Error(listener.message);
    return new RunsStage(at, store, service, drills, clock, dataDir, logged, listener, !beside, blobs);
  }

  get url(): string {
    return this.listener.url;
  }

  /** Somebody with an account of their own. */
  async person(): Promise<Person> {
    people += 1;
    const accountId = `acct_${people}`;
    const key = makeKey();
    await this.store.accounts.accountAdd(funded(accountId, `${accountId}@example.org`));
    const record = { publicId: keyPublicId(key) ?? "", sha256: keyDigest(key), accountId, name: "" };
    await this.store.accounts.keyAdd({ ...record, createdAt: 0 });
    return new Person(this.url, key, accountId);
  }

  /** Integers as numbers. */
  async rows(sql: string): Promise<Record<string, unknown>[]> {
    const found = await this.place.rows(sql);
    const plain = (value: unknown) => (typeof value === "bigint" ? Number(value) : value);
    return found.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])));
  }

  /** Everything that the bytes' store has, in order. */
  async blobIds(): Promise<string[]> {
    const ids: string[] = [];
    let after: string | undefined;
    do {
      const page = await this.service.runs.blobs.list(after);
      if (page instanceof BlobsDown) throw new Error(page.reason);
      ids.push(...page.blobs.map(({ id }) => id));
      after = page.next;
    } while (after !== undefined);
    return ids.sort();
  }

  /** What has begun to arrive. */
  async staged(): Promise<string[]> {
    return await readdir(join(this.dataDir, "staging"));
  }

  /** What totals, places or folders say that is not so; empty. */
  async wrong(): Promise<unknown[]> {
    const { requests, bodies, live } = this.service.runs;
    const totals = await this.store.runs.runTotalsWrong();
    const faults = this.logged.filter((line) => line.startsWith("request fault"));
    return [
      totals,
      faults,
      [...live],
      await this.staged(),
      requests.size + bodies.size === 0 ? [] : [`${requests.size} and ${bodies.size} places`],
    ].flat();
  }

  /** As if the process ended: requests and their bytes are cut, the stores stay as they are. */
  async stop(): Promise<void> {
    this.service.core.lifecycle.cut();
    await this.listener.stop();
    this.service.runs.blobs.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const wrong = this.owned ? await this.wrong() : [];
    await this.stop();
    if (this.owned) await this.place[Symbol.asyncDispose]();
    if (wrong.length > 0) throw new Error(`left wrong: ${Bun.inspect(wrong)}`);
  }
}

let people = 0;
