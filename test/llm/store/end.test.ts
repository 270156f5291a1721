/** How responses end: price, answer and what their key is worth become one record, once. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ENGINES, startServer, stopServer } from "../../store/engines.ts";
import { AT } from "../../store/rows.ts";
import { answer, completion, counts, ending, enqueuing, HELD, idsOf, opened, submission, taking } from "./rows.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

const NOTHING = { owner: "n1", request: null, estimated: 0, ended_at: AT + 1 };

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("price, usage and answer are kept in one step, over a restart; a repeat says the same and charges nothing", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      await llm.submit(submission("r1"));
      await llm.submit(submission("r2"));
      expect([await llm.complete(completion("r1")), await llm.complete(completion("r1", { estimated: true }))]).toEqual(
        ["kept", "kept"],
      );
      expect(await llm.complete(completion("r2", { estimated: true }))).toBe("kept");
      const done = { ...NOTHING, state: "done" };
      expect(await at.row("r1")).toEqual({ ...done, key: "kr1", object: answer("r1") });
      expect(await at.row("r2")).toEqual({ ...done, key: "kr2", object: answer("r2"), estimated: 1 });
      expect(await counts(at.store)).toEqual({ paid: 2, held: 0 });
      const usage = { charges: 2, promptTokens: 200, cachedTokens: 80, completionTokens: 60 };
      expect(await at.store.charges.usageDays({ accountId: "a1", fromDay: 0 })).toMatchObject([
        { item: "m1", ...usage },
      ]);
      expect([await llm.end(ending("r1")), await llm.end(ending("r1", { key: "free" }))]).toEqual(["lost", "lost"]);
      await at.reopen();
      const known = await at.store.llm.responseOfKey({ accountId: "a1", key: "kr1" });
      expect([known, await counts(at.store)]).toMatchObject([{ object: answer("r1") }, { paid: 2, held: 0 }]);
    });

    test("only its owner ends a response: what another process ended is lost, and is not charged", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      await llm.submit(submission("r1"));
      expect([
        await llm.complete(completion("r1", { owner: "n2" })),
        await llm.end(ending("r1", { owner: "n2" })),
      ]).toEqual(["lost", "lost"]);
      expect([
        await llm.complete(completion("r1", { accountId: "a2" })),
        await llm.end(ending("r1", { accountId: "a2" })),
      ]).toEqual(["lost", "lost"]);
      expect(await counts(at.store)).toEqual({ paid: 0, held: 1 });
      expect(await llm.end(ending("r1"))).toBe("ended");
      expect([await llm.complete(completion("r1")), await llm.complete(completion("r9"))]).toEqual(["lost", "lost"]);
      expect(await at.row("r1")).toEqual({ ...NOTHING, state: "ended", key: "kr1", object: null });
      expect(await counts(at.store)).toEqual({ paid: 0, held: 0 });
    });

    test("an answer whose hold has gone is lost: neither charged nor kept", async () => {
      await using at = await opened(name);
      const { llm, charges } = at.store;
      await llm.submit(submission("r1", { charge: { expiresAt: AT + 40 } }));
      await charges.holdsExpire({ before: AT + 41 });
      expect(await llm.complete(completion("r1"))).toBe("lost");
      expect([await at.row("r1"), await counts(at.store)]).toMatchObject([{ state: "running" }, { paid: 0, held: 0 }]);
      expect(await llm.end(ending("r1"))).toBe("ended");
      // More than is held is never charged.
      await llm.submit(submission("r2", { charge: { amount: 519n } }));
      expect(await llm.complete(completion("r2"))).toBe("lost");
      await llm.end(ending("r2"));
    });

    test("a response that failed gives its money back, and its key is what its end says", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      for (const id of ["free", "shown", "terminal", "told"]) await llm.submit(submission(id));
      await llm.enqueue(enqueuing("job"));
      expect(idsOf(await llm.jobsTake(taking("n1")))).toEqual(["job"]);
      const ends = [
        ending("free", { key: "free" }),
        ending("shown", { key: "free", object: "{}" }),
        ending("terminal"),
        ending("told", { object: "{}" }),
        ending("job", { key: "answer", object: '{"status":"failed"}' }),
      ];
      for (const one of ends) expect([await llm.end(one), await llm.end(one)]).toEqual(["ended", "lost"]);
      const ended = { ...NOTHING, state: "ended" };
      expect([await at.row("free"), await at.row("shown")]).toEqual([undefined, { ...ended, key: null, object: "{}" }]);
      expect(await at.row("terminal")).toEqual({ ...ended, key: "kterminal", object: null });
      expect(await at.row("told")).toEqual({ ...ended, key: "ktold", object: "{}" });
      expect(await at.row("job")).toEqual({ ...ended, state: "done", key: "kjob", object: '{"status":"failed"}' });
      expect([await counts(at.store), await at.held()]).toEqual([{ paid: 0, held: 0 }, []]);
      const again = (id: string) => llm.submit(submission(`${id}-2`, { response: { key: `k${id}` } }));
      expect([await again("free"), await again("shown")]).toEqual([HELD, HELD]);
      expect([await again("terminal"), await again("told"), await again("job")]).toMatchObject([
        { response: { state: "ended" } },
        { response: { state: "ended" } },
        { response: { state: "done" } },
      ]);
    });

    test("a hidden response is found by its key alone, as long as it is kept, which may be shorter; others are not touched by that", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      await llm.submit(submission("r1", { response: { hidden: true, object: "{}" } }));
      await llm.submit(submission("r2"));
      await llm.submit(submission("runs", { response: { hidden: true } }));
      const found = async () => [
        await llm.response({ id: "r1", accountId: "a1" }),
        await llm.responseOfKey({ accountId: "a1", key: "kr1" }),
        await llm.submit(submission("r3", { response: { key: "kr1" } })),
      ];
      expect(await found()).toMatchObject([
        undefined,
        { state: "running" },
        { is: "known", response: { id: "r1", object: "{}" } },
      ] as never);
      for (const id of ["r1", "r2"]) expect(await llm.complete(completion(id))).toBe("kept");
      expect(await llm.complete(completion("r1"))).toBe("kept");
      expect(await found()).toMatchObject([
        undefined,
        { state: "done" },
        { is: "known", response: { object: answer("r1") } },
      ] as never);
      const old = { before: AT + 1, only: "hidden" } as const;
      expect([await llm.responsesForget(old), (await at.row("r1"))?.state]).toEqual(["done", "done"]);
      const next = { ...old, before: AT + 10 ** 9 };
      expect(await llm.responsesForget(next)).toBe("done");
      const left = await at.rows("SELECT id FROM responses ORDER BY id");
      expect(left.map(({ id }) => id)).toEqual(["r2", "runs"]);
      await llm.end(ending("runs"));
    });

    test("what ended before is forgotten, in bounded parts; what runs or waits never is", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      await llm.submit(submission("running"));
      await llm.enqueue(enqueuing("queued"));
      const many = Array.from({ length: 300 }, (_, index) => `r${index}`);
      for (const id of many) await llm.submit(submission(id));
      // One after another: all at once, they wait for one account longer than the store waits on a busy machine.
      for (const [index, id] of many.entries())
        expect(await llm.complete(completion(id, { at: AT + index }))).toBe("kept");
      expect(await llm.responsesForget({ before: AT })).toBe("done");
      expect([
        await llm.responsesForget({ before: AT + 290 }),
        await llm.responsesForget({ before: AT + 290 }),
      ]).toEqual(["more", "done"]);
      const left = await at.rows("SELECT id FROM responses");
      expect(left.map(({ id }) => String(id)).sort()).toEqual([...many.slice(290), "queued", "running"].sort());
      expect(await llm.submit(submission("again", { response: { key: "kr0" } }))).toEqual(HELD);
    }, 20_000);
  });
}
