/**
 * Reports to the operator that the database lost confirmed transfers: a replica was promoted without the last commits, or a copy was
 * put back. The answers were given, so nothing is taken back; only a person can decide who bears the loss.
 */
import type { Log } from "../std/log.ts";
import { usdText } from "../std/usd.ts";
import type { LedgerChange, ServerIdentity, StoreBase } from "../store/store.ts";

/** The line names this many accounts, and the number of all. */
const ACCOUNTS_NAMED = 20;

export class LedgerWatch {
  /** The number of confirmed transfers that were lost since the start. */
  lostTransfers = 0;
  /** The sum of their amounts, nano-dollars. */
  lostAmount = 0n;

  constructor(
    private readonly log: Log,
    store: Pick<StoreBase, "onLedgerChange">,
  ) {
    store.onLedgerChange?.((change) => this.changed(change));
  }

  /** The warning of `/readyz`; undefined: nothing was lost. */
  get warning(): string | undefined {
    if (this.lostTransfers === 0) return undefined;
    // Everyone may read it, so it has no amounts: the log and the metrics have them.
    return "the database lost transfers of the ledger that it had confirmed; the log says under 'ledger lost' which, and what to do";
  }

  private changed({ checked, missing, before, now }: LedgerChange): void {
    const servers = { before: named(before), now: named(now) };
    const oldest = missing[0];
    const newest = missing.at(-1);
    if (!oldest || !newest) {
      this.log.info("database server replaced", { ...servers, checked, missing: 0 });
      return;
    }
    const byAccount = new Map<string, bigint>();
    for (const { accountId, amount } of missing) {
      this.lostAmount += amount;
      byAccount.set(accountId, (byAccount.get(accountId) ?? 0n) + amount);
    }
    this.lostTransfers += missing.length;
    const sums = [...byAccount].slice(0, ACCOUNTS_NAMED).map(([id, amount]) => `${id} ${usdText(amount)}`);
    this.log.error("ledger lost", {
      ...servers,
      checked,
      missing: missing.length,
      usd: usdText(missing.reduce((sum, { amount }) => sum + amount, 0n)),
      oldest: `${oldest.id} at ${oldest.at}`,
      newest: `${newest.id} at ${newest.at}`,
      accounts: byAccount.size,
      usd_by_account: sums.join(", "),
      advice:
        "these transfers were confirmed as durable, their answers were given, and the database of DATABASE_URL lacks them: was a " +
        "replica promoted without the last commits? If the old server still has them, promote that one instead; else book what each " +
        "account owes with 'tendon admin credit --account A --usd -N'. Synchronous replication keeps it from coming again.",
    });
  }
}

function named(server: ServerIdentity | undefined): string {
  const { system = "unknown", timeline = "unknown", database = "unknown" } = server ?? {};
  return `system ${system}, timeline ${timeline}, database ${database}`;
}
