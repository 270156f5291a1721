/** Responses as they are submitted, live and as background jobs: the record and its hold are there both, or neither. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Submitted } from "../../../src/llm/store/records.ts";
import type { StoreDown } from "../../../src/store/store.ts";
import { funded } from "../../account/fake-store.ts";
import { ENGINES, startServer, stopServer } from "../../store/engines.ts";
import { AT } from "../../store/rows.ts";
import { completion, counts, ending, enqueuing, HELD, idsOf, NO_EXPIRY, opened, submission, taking } from "./rows.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("a live response is recorded with its hold; a repeat of the same submission says the same, once", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      const one = submission("r1", { response: { object: "{}" } });
      expect([await llm.submit(one), await llm.submit(one)]).toEqual([HELD, HELD]);
      expect(await counts(at.store)).toEqual({ paid: 0, held: 1 });
      const stored = { ...one.response, state: "running" as const, owner: "n1", object: "{}" };
      const { key: _, createdAt: __, model: ___, hidden: ____, ...shown } = stored;
      expect(await llm.response({ id: "r1", accountId: "a1" })).toEqual(shown);
      expect(await llm.responseOfKey({ accountId: "a1", key: "kr1" })).toEqual(shown);
      expect(await llm.response({ id: "r1", accountId: "a2" })).toBeUndefined();
      expect(await llm.responseOfKey({ accountId: "a2", key: "kr1" })).toBeUndefined();
    });

    test("a known key gives the response that has it, running or ended, and holds nothing; keys are those of an account", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      await llm.submit(submission("r1"));
      const again = submission("r2", { response: { key: "kr1" } }, "n2");
      expect(await llm.submit(again)).toMatchObject({ response: { id: "r1", state: "running", owner: "n1" } });
      expect(await llm.enqueue(enqueuing("r2", { response: { key: "kr1" } }))).toMatchObject({
        response: { id: "r1" },
      });
      await llm.complete(completion("r1"));
      expect(await llm.submit(again)).toMatchObject({ response: { id: "r1", state: "done" } });
      expect(await llm.response({ id: "r2", accountId: "a1" })).toBeUndefined();
      expect(await llm.submit(submission("r3", { response: { key: "kr1", accountId: "a2" } }))).toEqual(HELD);
      expect([await counts(at.store), await counts(at.store, "a2")]).toEqual([
        { paid: 1, held: 0 },
        { paid: 0, held: 1 },
      ]);
    });

    test("what the money refuses leaves no row, and its key is free", async () => {
      await using at = await opened(name);
      const { llm, accounts } = at.store;
      await accounts.accountAdd({ ...funded("poor", "poor@example.org"), credit: 0n });
      await accounts.accountAdd({ ...funded("short", "short@example.org"), credit: 599n });
      await accounts.accountAdd({ ...funded("bound", "bound@example.org"), spendLimit: 599n });
      for (const [accountId, refusal] of [
        ["poor", "payment_required"],
        ["short", "insufficient_credit"],
        ["bound", "spend_limit_exceeded"],
        ["nobody", "account_unknown"],
      ] as const) {
        const changes = { response: { accountId } };
        expect([
          await llm.submit(submission("r1", changes)),
          await llm.enqueue(enqueuing("r1", changes)),
          await llm.responseOfKey({ accountId, key: "kr1" }),
        ]).toEqual([{ is: refusal }, { is: refusal }, undefined]);
      }
      expect(await at.rows("SELECT id FROM responses")).toEqual([]);
      const affordable = { response: { accountId: "short" }, charge: { amount: 599n } };
      expect(await llm.submit(submission("r1", affordable))).toEqual(HELD);
      await llm.end(ending("r1", { accountId: "short" }));
    });

    test("jobs are bounded, of an account and in all, to the last one; a refused one leaves nothing, an ended one makes room", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      const of = (accountId: string, id: string) => llm.enqueue(enqueuing(id, { response: { accountId } }));
      const isHeld = (outcome: Submitted | StoreDown) => "is" in outcome && outcome.is === "held";
      const many = Array.from({ length: 20 }, (_, index) => of("a1", `r${index}`));
      const outcomes = await Promise.all(many);
      expect(outcomes.filter(isHeld)).toHaveLength(5);
      expect(outcomes.filter((outcome) => !isHeld(outcome))).toEqual(Array(15).fill({ is: "full", bound: "account" }));
      for (const id of ["s1", "s2", "s3"]) expect(await of("a2", id)).toEqual(HELD);
      expect(await of("a3", "t1")).toEqual(HELD);
      expect([await of("a3", "t2"), await of("a1", "r99")]).toEqual([
        { is: "full", bound: "all" },
        { is: "full", bound: "account" },
      ]);
      expect(await of("a3", "t1")).toEqual(HELD);
      expect([await counts(at.store), (await at.rows("SELECT id FROM responses")).length]).toEqual([
        { paid: 0, held: 5 },
        9,
      ]);
      const [taken = ""] = idsOf(await llm.jobsTake(taking("n1", { max: 1 })));
      expect(await of("a3", "t2")).toEqual({ is: "full", bound: "all" });
      const { account_id: accountId } =
        (await at.rows(`SELECT account_id FROM responses WHERE id = '${taken}'`))[0] ?? {};
      await llm.end(ending(taken, { accountId: String(accountId), object: "{}", key: "answer" }));
      expect(await of("a3", "t2")).toEqual(HELD);
    });

    test("a response whose submission was not answered is taken back; the submission that arrives after that does nothing", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      for (const order of ["before", "after"] as const) {
        const one = submission(`r-${order}`, { response: { key: "k", object: "{}" } });
        if (order === "before") expect(await llm.submit(one)).toEqual(HELD);
        expect([await llm.withdraw({ ...one, at: AT }), await llm.withdraw({ ...one, at: AT })]).toEqual([
          "withdrawn",
          "withdrawn",
        ]);
        expect(await llm.submit(one)).not.toEqual(HELD);
        expect(await llm.complete(completion(`r-${order}`))).toBe("lost");
        expect([await counts(at.store), await at.held()]).toEqual([{ paid: 0, held: 0 }, []]);
        expect(await llm.responseOfKey({ accountId: "a1", key: "k" })).toBeUndefined();
        expect(await llm.response({ id: `r-${order}`, accountId: "a1" })).toMatchObject({ object: undefined });
      }
      expect(await llm.submit(submission("r3", { response: { key: "k" } }))).toEqual(HELD);
      // One that has ended stays as it is.
      await llm.complete(completion("r3"));
      await llm.withdraw({ ...submission("r3", { response: { key: "k" } }), at: AT });
      expect(await llm.responseOfKey({ accountId: "a1", key: "k" })).toMatchObject({ id: "r3", state: "done" });
    });

    test("holds that a record owns outlive every search for those of dead nodes, and end with the record", async () => {
      await using at = await opened(name);
      const { llm, charges } = at.store;
      await llm.enqueue(enqueuing("job"));
      await llm.submit(submission("owned"));
      await llm.submit(submission("dated", { charge: { expiresAt: AT + 40 } }));
      await charges.holdsExpire({ before: AT + 40 });
      expect(await at.held()).toEqual(["dated", "job", "owned"]);
      // `serve` starts on a store that no other process has: `all`.
      await charges.holdsExpire({ before: NO_EXPIRY });
      expect(await at.held()).toEqual(["job", "owned"]);
      expect(await llm.complete(completion("dated"))).toBe("lost");
      expect(idsOf(await llm.jobsTake(taking("n1")))).toEqual(["job"]);
      expect([await llm.complete(completion("job")), await llm.end(ending("owned"))]).toEqual(["kept", "ended"]);
      expect(await counts(at.store)).toEqual({ paid: 1, held: 0 });
    });
  });
}
