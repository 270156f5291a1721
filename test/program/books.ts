/** A service that charges the same for every chunk, on either engine, and its books as they are behind it. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import postgres from "postgres";
import { newKey } from "../../src/account/key.ts";
import type { Account } from "../../src/account/store/accounts.ts";
import type { Store } from "../../src/service/domains.ts";
import { openStore } from "../../src/service/store.ts";
import { systemClock } from "../../src/std/clock.ts";
import { makeId } from "../../src/std/ids.ts";
import { StoreDown } from "../../src/store/store.ts";
import { funded } from "../account/fake-store.ts";
import { usable } from "../store/engines.ts";
import type { PostgresServer } from "../store/postgres-server.ts";
import type { CutProxy } from "./cut-proxy.ts";
import type { Target } from "./payers.ts";
import { type Ended, Place, type Server } from "./program.ts";

const MODEL = "vendorB/molmoact2";
const OTHERS = ["vendorA/dreamzero-astra", "vendorC/rho", "vendorD/isaac-0.5", "vendorE/pi0.5", "vendorF/picasso"].map(
  (id) => `[robot."${id}:yam"]\ndevice = "echo"\n`,
);
/** Thirty rows, and a prompt that costs nothing. */
const PRICES = `prompt_usd_per_mtok = "0"\ncached_prompt_usd_per_mtok = "0"\nrow_usd_per_mrow = "1000"\n`;
/** What each chunk costs, nano-dollars. */
export const CHUNK = 30n * 1_000_000n;

export interface Payer {
  readonly accountId: string;
  readonly key: string;
}

/** A settled run. */
interface Charge {
  readonly id: string;
  readonly cost: bigint;
}

/** An observation that was answered, as it is kept. */
interface Kept {
  readonly sessionId: string;
  readonly observationId: string;
  readonly generationId: string;
}

export class Books implements AsyncDisposable {
  private constructor(
    private readonly place: Place,
    private readonly url: string | undefined,
    private readonly store: Store,
  ) {}

  /** In an empty folder; on PostgreSQL in an empty database of `postgresql`. `more`: of the configuration. */
  static async open(postgresql: PostgresServer | undefined, device = "echo", more = ""): Promise<Books> {
    const place = await Place.make();
    const url = await postgresql?.database();
    const model = `[robot."${MODEL}:yam"]\ndevice = "${device}"\n${PRICES}`;
    await Bun.write(place.path("tendon.toml"), [model, ...OTHERS, more].join("\n"));
    return new Books(place, url, usable(await openStore({ dataDir: place.path("data"), databaseUrl: url }, "beside")));
  }

  /** Starts the service; `databaseUrl`: another way to its database. */
  serve(env: Record<string, string> = {}, databaseUrl = this.url): Promise<Server> {
    const args = ["--config", this.place.path("tendon.toml"), "--data", this.dataDir];
    return this.place.serve(args, { ...this.database(databaseUrl), ...env });
  }

  /** Starts the service and kills it after so much time, ready or not. */
  async cutStart(ms: number): Promise<void> {
    const words = ["--config", this.place.path("tendon.toml"), "--data", this.dataDir];
    const child = this.place.spawn(["serve", "--dev", "--json", "--port", "0", ...words], this.database());
    await Bun.sleep(ms);
    child.kill("SIGKILL");
    await child.exited;
  }

  private database(url = this.url): Record<string, string> {
    return url === undefined ? {} : { DATABASE_URL: url };
  }

  get dataDir(): string {
    return this.place.path("data");
  }

  /** Runs a command of the program on the same data to its end. */
  run(words: readonly string[]): Promise<Ended> {
    return this.place.run([...words, "--data", this.dataDir], this.database());
  }

  /** The address of the database over a proxy. */
  over(proxy: CutProxy): string {
    return proxy.through(this.url ?? "");
  }

  /** A new account with credit for many chunks, unless told otherwise. */
  async payer(money: { credit?: bigint; spendLimit?: bigint } = {}): Promise<Payer> {
    const accountId = makeId("acct_", systemClock);
    const account = { ...funded(accountId, `${accountId}@example.org`), credit: 1_000_000n * CHUNK, ...money };
    const added = await this.store.accounts.accountAdd(account);
    const { key, record } = newKey(0);
    const keyed = await this.store.accounts.keyAdd({ ...record, accountId, name: "" });
    if (added !== "added" || keyed !== "added") throw new Error(`no account: ${said(added)}, ${said(keyed)}`);
    return { accountId, key };
  }

  async money({ accountId }: Payer): Promise<Account> {
    const account = await this.store.accounts.accountById(accountId);
    if (account === undefined || account instanceof StoreDown) throw new Error(`no account: ${said(account)}`);
    return account;
  }

  async charges({ accountId }: Payer): Promise<readonly Charge[]> {
    const found = await this.rows<Charge>(
      `SELECT id, cost FROM charges WHERE account_id = '${accountId}' AND settled_at IS NOT NULL ORDER BY id`,
    );
    return found.map(({ id, cost }) => ({ id, cost: BigInt(cost) }));
  }

  kept({ accountId }: Payer): Promise<readonly Kept[]> {
    return this.rows<Kept>(
      `SELECT session_id AS "sessionId", observation_id AS "observationId", generation_id AS "generationId"
       FROM observations WHERE account_id = '${accountId}'`,
    );
  }

  /** Throws at books that are not sound. */
  async expectSound(): Promise<void> {
    const report = await this.store.charges.ledgerCheck();
    const problem = report instanceof StoreDown ? report.reason : report.problem;
    if (problem !== undefined) throw new Error(`the ledger is not sound: ${problem}`);
  }

  /** What holds are left are given back, as if their time were over. */
  async expireHolds(): Promise<void> {
    while ((await this.store.charges.holdsExpire({ before: Number.MAX_SAFE_INTEGER })) === "more");
  }

  target(server: Server, { key }: Payer): Target {
    return { url: server.ready.url, key };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
    await this.place[Symbol.asyncDispose]();
  }

  /** What a statement finds, beside the service or without it. */
  async rows<Row>(sql: string): Promise<readonly Row[]> {
    if (this.url === undefined) {
      using db = new Database(join(this.place.path("data"), "tendon.sqlite"), { readonly: true });
      return db.query<Row, []>(sql).all();
    }
    const client = postgres(this.url, { max: 1 });
    const rows = await client.unsafe(sql);
    await client.end();
    return rows as unknown as readonly Row[];
  }
}

function said(outcome: unknown): string {
  return outcome instanceof StoreDown ? outcome.reason : String(outcome);
}
