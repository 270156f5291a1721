/** The account of `serve --dev`. It is made once; its key is kept in the data folder, so that every start can print it. */
import { join } from "node:path";
import type { ChargeStore } from "../charge/store/charges.ts";
import { monthOf } from "../std/calendar.ts";
import { type Clock, unixSeconds } from "../std/clock.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import { readText, writePrivate } from "../std/file.ts";
import { makeId } from "../std/ids.ts";
import { Problem } from "../std/problem.ts";
import { StoreDown } from "../store/store.ts";
import { authenticate } from "./authenticate.ts";
import { readCredentials, writeCredentials } from "./credentials.ts";
import { newKey } from "./key.ts";
import { Keys } from "./keys.ts";
import type { AccountStore } from "./store/accounts.ts";

export const DEV_EMAIL = "dev@localhost";
const KEY_FILE = "dev-key";
/** The account's first credit in nano-dollars: 100 USD. */
const CREDIT = 100_000_000_000n;

interface DevStore {
  readonly accounts: AccountStore;
  readonly charges: Pick<ChargeStore, "credit">;
}

export interface DevAccount {
  readonly accountId: string;
  readonly key: string;
}

/** The account `dev@localhost` with 100 USD, and its key: the kept one, or a new one if that is missing or not valid. */
export async function devAccount(store: DevStore, dataDir: string, clock: Clock): Promise<DevAccount | Problem> {
  const path = join(dataDir, KEY_FILE);
  try {
    const kept = (await readText(path))?.trim();
    const principal = kept && (await authenticate(`Bearer ${kept}`, new Keys(store.accounts, clock)));
    if (kept && principal && "accountId" in principal) return { accountId: principal.accountId, key: kept };
    // The kept key may still be valid.
    if (principal instanceof Failure && principal.row === EVERY.auth_unavailable) {
      return storeFails(`the key of ${DEV_EMAIL} cannot be verified: ${principal.detail}`);
    }
    const made = await makeDevKey(store, clock);
    if (made instanceof StoreDown) return storeFails(`the account ${DEV_EMAIL} cannot be made: ${made.reason}`);
    await writePrivate(path, `${made.key}\n`);
    return made;
  } catch (error) {
    const todo = "put its disk in order or give it room, then start again";
    return new Problem(`the key of ${DEV_EMAIL} cannot be kept in ${path}: ${(error as Error).message}; ${todo}`);
  }
}

function storeFails(what: string): Problem {
  return new Problem(`${what}; start again once the store works`);
}

async function makeDevKey(store: DevStore, clock: Clock): Promise<DevAccount | StoreDown> {
  const createdAt = unixSeconds(clock);
  const id = makeId("acct_", clock);
  const added = await store.accounts.accountAdd({ id, email: DEV_EMAIL, createdAt, verified: true });
  if (added instanceof StoreDown) return added;
  const account = await store.accounts.accountByEmail(DEV_EMAIL);
  if (account instanceof StoreDown) return account;
  if (!account) return new StoreDown("the account is not there after it was added");
  const { id: accountId } = account;
  // The transfer has the account's id, so it is paid once.
  const credit = { accountId, transferId: accountId, amount: CREDIT, at: createdAt, month: monthOf(createdAt) };
  const paid = await store.charges.credit(credit);
  if (paid instanceof StoreDown) return paid;
  const { key, record } = newKey(createdAt);
  const outcome = await store.accounts.keyAdd({ ...record, accountId, name: "serve --dev" });
  if (outcome instanceof StoreDown) return outcome;
  if (outcome === "payment_required") {
    return new StoreDown(`its credit is spent; run: tendon admin credit --account ${DEV_EMAIL} --usd 100`);
  }
  return outcome === "added" ? { accountId, key } : new StoreDown(`the key was not added: ${outcome}`);
}

/** Saves the key for the command line if the credentials file holds none; if it holds this key, its address, as the port may have changed. */
export async function saveDevCredentials(path: string, key: string, baseUrl: string): Promise<Problem | undefined> {
  const saved = await readCredentials(path);
  if (saved instanceof Problem) return saved;
  if (saved && (saved.api_key !== key || saved.base_url === baseUrl)) return undefined;
  return writeCredentials(path, { base_url: baseUrl, api_key: key });
}
