/**
 * A failover that loses the last commits is detected at reconnect by the ledger's high-water mark, and told: a real replica is
 * promoted without them, behind an address that stays.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { LedgerWatch } from "../../../src/charge/ledger-watch.ts";
import { DOMAINS } from "../../../src/service/domains.ts";
import { markFile } from "../../../src/store/postgres/high-water.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { funded } from "../../account/fake-store.ts";
import { CutProxy } from "../../program/cut-proxy.ts";
import { onPostgres, usable } from "../engines.ts";
import { PostgresServer } from "../postgres-server.ts";
import { newCharge, settled } from "../rows.ts";
import { temporaryFolder } from "../temporary.ts";

interface Line {
  readonly event: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** A server, its replica, and an address that leads to the first. */
async function pair() {
  const primary = await PostgresServer.start("fsync=off", "wal_level=replica", "hot_standby=on");
  const replica = await primary.replica();
  const proxy = await CutProxy.before(primary.port);
  const dir = await temporaryFolder();
  const url = proxy.through(primary.url("postgres"));
  const open = async () => {
    const store = usable(await openPostgresStore(DOMAINS, url, { mark: markFile(join(dir.path, "mark.json")) }));
    const lines: Line[] = [];
    const told = Promise.withResolvers<void>();
    const note = (event: string, facts: Line["facts"] = {}) => {
      lines.push({ event, facts });
      told.resolve();
    };
    const watch = new LedgerWatch({ info: note, error: note }, store);
    const chunk = async (id: string, accountId: string) => {
      for (;;) {
        const held = await store.charges.hold(newCharge(id, { accountId }));
        if (!(held instanceof StoreDown)) break;
      }
      expect(await store.robot.settleChunk(settled(id, { accountId }))).toBe("kept");
    };
    return { store, lines, told: told.promise, watch, chunk };
  };
  return {
    primary,
    replica,
    proxy,
    open,
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await replica[Symbol.asyncDispose]();
      await primary[Symbol.asyncDispose]();
      await dir[Symbol.asyncDispose]();
    },
  };
}

onPostgres(() => {
  for (const restarted of [false, true]) {
    const when = restarted ? "before the next start" : "while the service runs";

    test(`a replica promoted ${when} without the last commits: the operator is told what is gone`, async () => {
      await using at = await pair();
      let one = await at.open();
      for (const id of ["a", "b"]) await one.store.accounts.accountAdd(funded(id, `${id}@example.org`));
      await one.chunk("gen_1", "a");
      await at.replica.caughtUp(at.primary);
      await at.replica.cutOff();
      for (const [id, account] of [
        ["gen_2", "a"],
        ["gen_3", "a"],
        ["gen_4", "b"],
      ] as const)
        await one.chunk(id, account);
      expect([one.lines, one.watch.warning]).toEqual([[], undefined]);
      if (restarted) await one.store.close();
      await at.primary.down();
      await at.replica.promote();
      at.proxy.lead(at.replica.port);
      if (restarted) one = await at.open();
      await one.told;
      const { event, facts } = one.lines[0] ?? { event: "", facts: {} };
      expect([event, facts.checked, facts.missing, facts.usd]).toEqual(["ledger lost", 4, 3, "0.000001560"]);
      expect(facts.usd_by_account).toBe("a 0.000001040, b 0.000000520");
      expect(facts.before).toMatch(/^system \d+, timeline 00000001, database \d+$/);
      expect(facts.now).toBe(String(facts.before).replace("00000001", "00000002"));
      expect(facts.advice).toContain("tendon admin credit");
      expect(one.watch).toMatchObject({ lostTransfers: 3, lostAmount: 1_560n });
      expect(one.watch.warning).toContain("ledger lost");
      // The log says it once; the service goes on with what there is.
      await one.chunk("gen_5", "a");
      expect(one.lines).toHaveLength(1);
      expect(await one.store.charges.ledgerCheck()).toMatchObject({ problem: undefined });
      await one.store.close();
      const next = await at.open();
      expect([next.lines, next.watch.warning]).toEqual([[], undefined]);
      await next.store.close();
    }, 120_000);
  }

  test("a replica that had everything: the operator reads that the server is another one, and nothing is missing", async () => {
    await using at = await pair();
    const one = await at.open();
    await one.store.accounts.accountAdd(funded("a", "a@example.org"));
    await one.chunk("gen_1", "a");
    await at.replica.caughtUp(at.primary);
    await at.primary.down();
    await at.replica.promote();
    at.proxy.lead(at.replica.port);
    await one.told;
    expect(one.lines).toMatchObject([{ event: "database server replaced", facts: { checked: 1, missing: 0 } }]);
    expect(one.watch.warning).toBeUndefined();
    await one.store.close();
  }, 120_000);

  test("a server that only crashed: nothing is said", async () => {
    await using at = await pair();
    const one = await at.open();
    await one.store.accounts.accountAdd(funded("a", "a@example.org"));
    await one.chunk("gen_1", "a");
    await at.primary.down();
    await at.primary.up();
    await one.chunk("gen_2", "a");
    await one.store.close();
    const next = await at.open();
    expect([one.lines, next.lines]).toEqual([[], []]);
    await next.store.close();
  }, 120_000);
});
