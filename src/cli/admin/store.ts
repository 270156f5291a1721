/** The store that the `admin` commands open, also while a service uses it, and what they say when it does not answer. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Account } from "../../account/store/accounts.ts";
import { type ServeConfig, serveConfig } from "../../config/serve.ts";
import type { Store } from "../../service/domains.ts";
import { openStore } from "../../service/store.ts";
import { systemClock, unixSeconds } from "../../std/clock.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { DATABASE_FILE } from "../../store/sqlite/folder.ts";
import { StoreDown } from "../../store/store.ts";
import type { Command, CommandLine } from "../frame/command.ts";
import { CONFIG_FLAG, DATA_FLAG, flagsOf } from "../frame/settings.ts";

export const STORE_FLAGS: Command["flags"] = {
  data: { ...DATA_FLAG, about: `${DATA_FLAG.about} DATABASE_URL wins over it.` },
  config: CONFIG_FLAG,
  json: { about: "Print one JSON object." },
};

/**
 * Opens the store that `serve` would use, and closes it however `work` ends. `absent`: whether an embedded store that does
 * not exist yet is made.
 */
export async function withStore(
  given: CommandLine,
  absent: "make" | "refuse",
  work: (store: Store, config: ServeConfig) => Promise<number | Problem>,
): Promise<number | Problem> {
  const config = await serveConfig(flagsOf(given));
  if (config instanceof Problem) return config;
  const { dataDir, databaseUrl } = config;
  if (databaseUrl === undefined && absent === "refuse" && !existsSync(join(dataDir, DATABASE_FILE))) {
    return new Problem(
      `there is no database in ${dataDir}; name the service's data folder with --data, or make an account first with: ` +
        "tendon admin account create --email E",
    );
  }
  const store = await openStore(config, "beside");
  if (store instanceof Problem) return store;
  try {
    return await work(store, config);
  } finally {
    await store.close();
  }
}

export const ACCOUNT_FLAG = { value: "A", about: "The account: its id or its e-mail.", required: true } as const;

/** `withStore` for a command with `ACCOUNT_FLAG`. */
export async function withAccount(
  given: CommandLine,
  work: (store: Store, account: Account) => Promise<number | Problem>,
): Promise<number | Problem> {
  return await withStore(given, "refuse", async (store) => {
    const account = await accountNamed(store, given.required("account"));
    return account instanceof Problem ? account : await work(store, account);
  });
}

/** The account of that id or e-mail. */
export async function accountNamed(store: Store, name: string): Promise<Account | Problem> {
  const { accounts } = store;
  const found = await (name.includes("@") ? accounts.accountByEmail(name.toLowerCase()) : accounts.accountById(name));
  if (found instanceof StoreDown) return notRead(found);
  return found ?? new Problem(`there is no account '${printable(name)}'; see: tendon admin account list`);
}

/** A write that did not answer. `what`: "the account was made"; `look`: the sub-command that shows whether it was. */
export function notWritten(down: StoreDown, what: string, look: string): Problem {
  return new Problem(
    down.outcomeUnknown
      ? `it is not known whether ${what}: the store did not answer (${down.reason}); look with 'tendon admin ${look}' before you try again`
      : `nothing was changed, the store is down: ${down.reason}; try again once it works`,
  );
}

export function notRead(down: StoreDown): Problem {
  return new Problem(`the store cannot be read: ${down.reason}; try again once it works`);
}

export function now(): number {
  return unixSeconds(systemClock);
}
