/** Several nodes on one PostgreSQL: one key is one response, one job is one node's, and no two writes wait for each other for ever. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Submitted } from "../../../src/llm/store/records.ts";
import type { Store } from "../../../src/service/domains.ts";
import { RandomStream } from "../../../src/std/random.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { ENGINES, startServer, stopServer } from "../../store/engines.ts";
import { AT, newCharge } from "../../store/rows.ts";
import { completion, counts, ending, enqueuing, HELD, idsOf, NO_EXPIRY, opened, submission, taking } from "./rows.ts";

for (const { absent, title } of ENGINES.filter(({ name }) => name === "PostgreSQL")) {
  describe.skipIf(absent)(title, () => {
    beforeAll(startServer, 60_000);
    afterAll(stopServer);

    /** A deadlock is found before a wait for a lock is given up. */
    const FIND_DEADLOCKS = `DO $do$ BEGIN
      EXECUTE format($$ALTER DATABASE %I SET deadlock_timeout = '20ms'$$, current_database());
    END $do$`;

    /** Two nodes; at the end none of their transactions has been ended as a deadlock. */
    async function nodes() {
      const at = await opened("PostgreSQL", FIND_DEADLOCKS);
      const stores = [at.store, await at.open()] as const;
      return {
        ...at,
        stores,
        [Symbol.asyncDispose]: async () => {
          // The server counts for good what sessions did that have ended.
          for (const store of stores) await store.close();
          await at.reopen();
          const [row] = await at.rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
          expect(Number(row?.deadlocks)).toBe(0);
          await at[Symbol.asyncDispose]();
        },
      };
    }

    test("the same key from two nodes at once is one response and one hold; everybody else is told which", async () => {
      await using at = await nodes();
      for (let round = 0; round < 25; round += 1) {
        const key = { response: { key: `k${round}` } };
        const submitted = await Promise.all(
          Array.from({ length: 8 }, (_, n): Promise<Submitted | StoreDown> => {
            const { llm } = at.stores[n % 2] ?? at.store;
            const id = `r${round}-${n}`;
            return n < 6 ? llm.submit(submission(id, key, `n${n % 2}`)) : llm.enqueue(enqueuing(id, key));
          }),
        );
        const held = submitted.findIndex((one) => "is" in one && one.is === "held");
        const known = { is: "known" as const, response: expect.objectContaining({ id: `r${round}-${held}` }) };
        expect(submitted).toEqual(submitted.map((_, n) => (n === held ? HELD : known)));
        expect(await counts(at.store)).toEqual({ paid: 0, held: 1 });
        const owner = held < 6 ? `n${held % 2}` : "n0";
        if (held >= 6) await at.store.llm.jobsTake(taking("n0"));
        expect(await at.store.llm.end(ending(`r${round}-${held}`, { owner }))).toBe("ended");
      }
      expect((await at.rows("SELECT id FROM responses")).length).toBe(25);
    }, 30_000);

    test("two nodes that take jobs at once never get the same one, and leave none", async () => {
      await using at = await nodes();
      const ids = Array.from({ length: 200 }, (_, n) => `r${100 + n}`);
      const account = (n: number) => ({ response: { accountId: `a${1 + (n % 3)}` } });
      const room = { accountMax: 500, allMax: 500 };
      await Promise.all(ids.map((id, n) => at.stores[n % 2]?.llm.enqueue({ ...enqueuing(id, account(n)), ...room })));
      const takeAll = async (store: Store, owner: string) => {
        const own: string[] = [];
        for (let idle = 0; idle < 3; ) {
          const jobs = idsOf(await store.llm.jobsTake(taking(owner, { known: own, max: 5, accountMax: 500 })));
          own.push(...jobs);
          idle = jobs.length === 0 ? idle + 1 : 0;
        }
        return own;
      };
      const shares = await Promise.all([
        takeAll(at.stores[0], "n1"),
        takeAll(at.stores[1], "n2"),
        takeAll(at.stores[0], "n3"),
        takeAll(at.stores[1], "n4"),
      ]);
      expect(shares.flat().sort()).toEqual(ids);
      expect(shares.filter((share) => share.length > 0).length).toBeGreaterThan(1);
    }, 30_000);

    test("submit, complete, end, withdraw, take, hold, release and expire at once: no deadlock, and every sum is right", async () => {
      await using at = await nodes();
      const random = new RandomStream("nodes");
      const below = (bound: number) => random.word() % bound;
      let paid = 0;
      const told = <T>(outcome: T | StoreDown): T => {
        if (outcome instanceof StoreDown) throw new Error(outcome.reason);
        return outcome;
      };
      const live = async ({ llm }: Store, n: number, owner: string) => {
        // Some ids and keys are another client's at the same time.
        const accountId = `a${1 + (n % 3)}`;
        const one = submission(`r${n}`, { response: { accountId, key: `k${n >> 2}` } }, owner);
        if (told(await llm.submit(one)).is !== "held") return;
        const how = below(4);
        if (how === 0) told(await llm.withdraw({ ...one, at: AT }));
        else if (how === 1)
          expect(told(await llm.end(ending(`r${n}`, { accountId, owner, key: "free" })))).toBe("ended");
        else if (told(await llm.complete(completion(`r${n}`, { accountId, owner }))) === "kept") paid += 1;
      };
      const job = async ({ llm }: Store, n: number, owner: string) => {
        const accountId = `a${1 + (n % 3)}`;
        told(await llm.enqueue({ ...enqueuing(`j${n}`, { response: { accountId } }), accountMax: 500, allMax: 500 }));
        for (const { id, accountId: whose } of told(await llm.jobsTake(taking(owner, { max: 2 }))).jobs) {
          if (told(await llm.complete(completion(id, { accountId: whose, owner }))) === "kept") paid += 1;
        }
      };
      const robot = async ({ charges }: Store, n: number) => {
        const accountId = `a${1 + (n % 3)}`;
        told(await charges.hold(newCharge(`gen_${n}`, { accountId })));
        if (below(2) === 0) told(await charges.release({ chargeId: `gen_${n}`, accountId }));
        else if (below(8) === 0) told(await charges.holdsExpire({ before: AT + 41 }));
      };
      let next = 0;
      const client = async (store: Store, who: number) => {
        for (let n = next++; n < 400; n = next++) {
          const choice = below(4);
          if (choice < 2) await live(store, n, `n${who}`);
          // Each call has another owner, since jobs that an owner does not know come again.
          else if (choice === 2) await job(store, n, `n${who}-${n}`);
          else await robot(store, n);
        }
      };
      await Promise.all(Array.from({ length: 12 }, (_, who) => client(at.stores[who % 2] ?? at.store, who)));
      await at.store.charges.holdsExpire({ before: NO_EXPIRY });
      for (const { id, accountId } of told(await at.store.llm.jobsTake(taking("last"))).jobs) {
        told(await at.store.llm.end(ending(id, { accountId, owner: "last", object: "{}", key: "answer" })));
      }
      const sums = await Promise.all(["a1", "a2", "a3"].map((id) => counts(at.store, id)));
      expect(sums.map(({ held }) => held)).toEqual([0, 0, 0]);
      expect(sums.reduce((sum, one) => sum + one.paid, 0)).toBe(paid);
      expect(await at.rows("SELECT id FROM responses WHERE ended_at IS NULL")).toEqual([]);
      expect(await at.held()).toEqual([]);
    }, 30_000);
  });
}
