/** A service with real stores of records and of bytes, which people use over a real socket. */
import { afterAll, beforeAll, describe, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { newKey } from "../../src/account/key.ts";
import type { S3Options } from "../../src/config/blobs.ts";
import { type Drill, Drills } from "../../src/drill.ts";
import { publicApp } from "../../src/http/app.ts";
import { type Listener, listen } from "../../src/http/listen.ts";
import { BlobsDown } from "../../src/runs/blob/blobs.ts";
import type { RunBounds } from "../../src/runs/store/records.ts";
import { sweep } from "../../src/runs/sweep.ts";
import { makeBlobs } from "../../src/service/blobs.ts";
import { build, type Service } from "../../src/service/build.ts";
import type { Store } from "../../src/service/domains.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Problem } from "../../src/std/problem.ts";
import { funded } from "../account/fake-store.ts";
import { type Browser, signedIn } from "../account/pages/browser.ts";
import { ENGINES, type EngineName, type Place, place, startServer, stopServer } from "../store/engines.ts";
import { S3, S3Server } from "./blob/s3-server.ts";
import { Person } from "./person.ts";

export type BlobName = "folder" | "S3";

interface Combination {
  readonly engine: EngineName;
  readonly blobs: BlobName;
}

/** Each store of records with each store of bytes, the title of its tests, and whether they cannot run here. */
export const MATRIX = ENGINES.flatMap(({ name, title, absent }) =>
  (["folder", "S3"] as const).map((blobs) => {
    const s3 = blobs === "S3";
    const combination: Combination = { engine: name, blobs };
    return { ...combination, title: `${title}, ${s3 ? S3.title : blobs}`, absent: absent || (s3 && S3.absent) };
  }),
);

/** Both stores of records, with bytes in a folder. */
export const RECORDS = MATRIX.filter(({ blobs }) => blobs === "folder");

/** The stores of a service without a configuration. */
export const DEFAULT = RECORDS.filter(({ engine }) => engine === "SQLite");

let s3: S3Server | undefined;

/** What a test works with: a stage, and a person with a new account. */
export interface Given {
  readonly at: RunsStage;
  readonly ann: Person;
}

type Declare = (title: string, work: (given: Given) => Promise<void>) => void;

/** A test may make a database, on a machine that does other work. */
const TEST_MS = 30_000;

interface StoresOptions extends StageOptions {
  /** Whether each test has a new stage, instead of sharing one with the others of its stores. */
  readonly fresh?: true;
}

/** Declares tests for each of these combinations of stores, with their servers. */
export function onStores(
  combinations: typeof MATRIX,
  { fresh, ...options }: StoresOptions,
  declare: (test: Declare, combination: Combination) => void,
): void {
  withServers(combinations);
  for (const combination of combinations) {
    const start = () => RunsStage.start({ ...options, ...combination });
    describe.skipIf(combination.absent)(combination.title, () => {
      let shared: RunsStage;
      if (!fresh) {
        beforeAll(async () => {
          shared = await start();
        });
        afterAll(() => shared[Symbol.asyncDispose]());
      }
      const inStage: Declare = (title, work) => {
        const run = async () => {
          await using own = fresh && (await start());
          const at = own ?? shared;
          await work({ at, ann: await at.person() });
        };
        test(title, run, TEST_MS);
      };
      declare(inStage, combination);
    });
  }
}

/** Starts the servers of these combinations for the tests of a file. */
function withServers(combinations: readonly Combination[]): void {
  if (combinations.some(({ engine }) => engine === "PostgreSQL")) {
    beforeAll(startServer, 60_000);
    afterAll(stopServer);
  }
  if (S3.absent || !combinations.some(({ blobs }) => blobs === "S3")) return;
  beforeAll(async () => {
    s3 = await S3Server.start();
  });
  afterAll(() => s3?.[Symbol.asyncDispose]());
}

/** A clock with real timers, whose wall time a test moves ahead. */
export class AheadClock {
  aheadSeconds = 0;
  readonly monotonicMs = systemClock.monotonicMs;
  readonly after = systemClock.after;
  readonly every = systemClock.every;

  unixMs(): number {
    return systemClock.unixMs() + 1_000 * this.aheadSeconds;
  }
}

/** The drills that a test names. */
class OwnDrills extends Drills {
  readonly names = new Set<Drill>();

  override strikes(name: Drill): boolean {
    return this.names.has(name);
  }
}

export interface StageOptions extends Partial<Combination> {
  readonly bounds?: Partial<RunBounds>;
  /** The stage whose records and bytes this one uses, as another node. */
  readonly beside?: RunsStage;
  /** Replaces the folder of the store. */
  readonly dataDir?: string;
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
    /** The options of the S3 store; undefined for a folder. */
    readonly s3: S3Options | undefined,
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
    const service = build(settings, { clock, log: { info: note, error: note }, store, blobs: bytes });
    // Time that a test skips has passed for the service, but not for running requests.
    Object.assign(service.core.clock, { seenMs: () => clock.unixMs() });
    service.robot.catalog.known = true;
    await service.runs.ownership.raise();
    const listener = listen(publicApp(service.http, service.surfaces), { host: "127.0.0.1", port: 0 });
    if (listener instanceof Problem) throw new Error(listener.message);
    return new RunsStage(at, store, service, drills, clock, dataDir, logged, listener, !beside, blobs, where.blobs);
  }

  get url(): string {
    return this.listener.url;
  }

  /** A person with a key, of this account or of a new one. */
  async person(known?: string): Promise<Person> {
    people += 1;
    const accountId = known ?? `acct_${people}`;
    const { key, record } = newKey(0);
    if (known === undefined) await this.store.accounts.accountAdd(funded(accountId, `${accountId}@example.org`));
    await this.store.accounts.keyAdd({ ...record, accountId, name: "" });
    return new Person(this.url, key, accountId, () => this.records(accountId));
  }

  private async records(accountId: string): Promise<readonly [number, number]> {
    const [row] = await this.rows(
      `SELECT CAST(sum((1 + files + uploads) * 1024 + coalesce(octet_length(manifest), 0)) AS BIGINT) AS stored,
         CAST(sum((coming - uploads) * 1024) AS BIGINT) AS reserved FROM robot_runs WHERE account_id = '${accountId}'`,
    );
    return [Number(row?.stored ?? 0), Number(row?.reserved ?? 0)];
  }

  /** A person who has a key, and a browser that is signed in. */
  async owner(): Promise<{ readonly me: Person; readonly browser: Browser }> {
    const browser = await signedIn(this);
    return { browser, me: await this.person("acct_me@example.org") };
  }

  /** Sends a request without a key. */
  send(path: string, init?: RequestInit): Promise<Response> {
    return fetch(`${this.url}${path}`, { redirect: "manual", ...init });
  }

  /** The rows of a query, with integers as numbers. */
  async rows(sql: string): Promise<Record<string, unknown>[]> {
    const found = await this.place.rows(sql);
    const plain = (value: unknown) => (typeof value === "bigint" ? Number(value) : value);
    return found.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])));
  }

  /** Sweeps when this time has passed for the service. */
  async sweep(afterSeconds = 0): Promise<void> {
    this.clock.aheadSeconds += afterSeconds;
    await sweep(this.service.runs);
  }

  /** The ids of all blobs, in order. */
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

  /** The names of bodies that arrive. */
  async staged(): Promise<string[]> {
    return await readdir(join(this.dataDir, "staging"));
  }

  /** The faults of totals, permits and folders. */
  async wrong(): Promise<unknown[]> {
    const { requests, bodies, downloads, live } = this.service.runs;
    const totals = await this.store.runs.runTotalsWrong();
    const faults = this.logged.filter((line) => line.startsWith("request fault"));
    return [
      totals,
      faults,
      [...live],
      await this.staged(),
      [requests, bodies, downloads].flatMap(({ size }) => (size === 0 ? [] : [`${size} permits`])),
    ].flat();
  }

  /** Ends the service as the end of its process does: requests are cut, and the stores stay. */
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
