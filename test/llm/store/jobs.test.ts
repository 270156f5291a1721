/** Background jobs: who gets which, and in what order; and the processes that run responses. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ENGINES, startServer, stopServer } from "../../store/engines.ts";
import { AT } from "../../store/rows.ts";
import { completion, counts, ending, enqueuing, idsOf, opened, submission, taking } from "./rows.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    const big = { accountMax: 2_000, allMax: 2_000 };

    test("a job that was taken has all that running it needs, and nobody else gets it", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      await llm.enqueue(enqueuing("r1"));
      const rates = { prompt: 3n, cachedPrompt: 1n, completion: 10n };
      const of = { id: "r1", accountId: "a1", model: "m1", key: "kr1", request: '{"of":"r1"}' };
      const more = { submittedAt: AT, repeats: 0, object: '{"id":"r1","status":"in_progress"}', held: 600n };
      expect(await llm.jobsTake(taking("n1"))).toEqual({ jobs: [{ ...of, ...more, ...rates }] });
      expect(await llm.jobsTake(taking("n2"))).toEqual({ jobs: [] });
      expect(await llm.jobsTake(taking("n1", { known: ["r1"] }))).toEqual({ jobs: [] });
      expect(await at.row("r1")).toMatchObject({ state: "running", owner: "n1" });
      await llm.complete(completion("r1"));
      expect(await at.row("r1")).toMatchObject({ state: "done", request: null });
      expect([await llm.jobsTake(taking("n1")), await counts(at.store)]).toEqual([{ jobs: [] }, { paid: 1, held: 0 }]);
    });

    test("a job whose taking was not answered comes again, to its owner alone, before new ones", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      for (const id of ["r1", "r2", "r3", "r4"]) await llm.enqueue(enqueuing(id));
      await llm.submit(submission("live"));
      expect(idsOf(await llm.jobsTake(taking("n1", { max: 2 })))).toEqual(["r1", "r2"]);
      expect(idsOf(await llm.jobsTake(taking("n2", { max: 1 })))).toEqual(["r3"]);
      expect(idsOf(await llm.jobsTake(taking("n1", { known: ["r1"], max: 2 })))).toEqual(["r2", "r4"]);
      expect(idsOf(await llm.jobsTake(taking("n1", { known: ["r1", "r2", "r4"] })))).toEqual([]);
      await llm.end(ending("live"));
    });

    test("a job that is put back keeps its hold, is taken when it is due, and a repeat of putting it back does nothing", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      for (const id of ["r1", "r2"]) await llm.enqueue(enqueuing(id));
      await llm.jobsTake(taking("n1", { max: 1 }));
      const now = 1_000 * AT;
      const back = { id: "r1", accountId: "a1", owner: "n1", repeats: 0, dueMs: now + 500 };
      expect([
        await llm.jobPutBack({ ...back, owner: "n2" }),
        await llm.jobPutBack({ ...back, id: "r2" }),
        await llm.jobPutBack(back),
        await llm.jobPutBack(back),
      ]).toEqual(["lost", "lost", "queued", "lost"]);
      expect([await at.row("r1"), await counts(at.store)]).toMatchObject([
        { state: "queued", owner: null, request: '{"of":"r1"}' },
        { held: 2 },
      ]);
      const early = await llm.jobsTake(taking("n2", { nowMs: now + 499 }));
      expect([idsOf(early), early]).toMatchObject([["r2"], { nextMs: now + 500 }]);
      // The process that put it back, and was not answered, does not take it meanwhile.
      expect(idsOf(await llm.jobsTake(taking("n1", { nowMs: now + 500, known: ["r1"] })))).toEqual([]);
      const again = await llm.jobsTake(taking("n1", { nowMs: now + 500 }));
      expect(again).toMatchObject({ jobs: [{ id: "r1", submittedAt: AT, repeats: 1, held: 600n }] });
      expect(await llm.jobPutBack(back)).toBe("lost");
      expect([await llm.complete(completion("r1")), await llm.jobPutBack({ ...back, repeats: 1 })]).toEqual([
        "kept",
        "lost",
      ]);
      expect(await llm.complete(completion("r2", { owner: "n2" }))).toBe("kept");
    });

    test("one model's jobs are bounded, with one node and of one account, so that another model's do not wait behind them", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      const of = (accountId: string, model: string) => ({ response: { accountId, model }, charge: { item: model } });
      for (let n = 0; n < 300; n += 1) await llm.enqueue({ ...enqueuing(`x${1_000 + n}`, of("a1", "m1")), ...big });
      for (const id of ["y1", "y2", "y3"]) await llm.enqueue({ ...enqueuing(id, of("a2", "m1")), ...big });
      for (const id of ["z1", "z2"]) await llm.enqueue({ ...enqueuing(id, of("a1", "m2")), ...big });
      const bounds = { modelMax: 3, accountMax: 6 };
      expect(idsOf(await llm.jobsTake(taking("n1", { ...bounds, max: 2 })))).toEqual(["x1000", "y1"]);
      expect(idsOf(await llm.jobsTake(taking("n2", bounds)))).toEqual(["x1001", "y2", "x1002", "z1", "z2"]);
      // The account has its share of the model on the two other nodes.
      expect(idsOf(await llm.jobsTake(taking("n3", bounds)))).toEqual(["y3"]);
      await llm.complete(completion("x1000"));
      const known = ["x1001", "y2", "x1002", "z1", "z2"];
      expect(idsOf(await llm.jobsTake(taking("n2", { ...bounds, known })))).toEqual([]);
      expect(idsOf(await llm.jobsTake(taking("n3", { ...bounds, known: ["y3"] })))).toEqual(["x1003"]);
    }, 20_000);

    test("accounts take turns, however many jobs one of them has", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      for (const id of ["x1", "x2", "x3", "x4"]) await llm.enqueue({ ...enqueuing(id), ...big });
      for (const id of ["y1", "y2"]) await llm.enqueue({ ...enqueuing(id, { response: { accountId: "a2" } }), ...big });
      await llm.enqueue({ ...enqueuing("z1", { response: { accountId: "a3" } }), ...big });
      const order: string[] = [];
      while (order.length < 7) order.push(...idsOf(await llm.jobsTake(taking("n1", { known: order, max: 1 }))));
      expect(order).toEqual(["x1", "y1", "z1", "x2", "y2", "x3", "x4"]);
    });

    test("the jobs of an account that run are bounded over all nodes; jobs of others do not wait behind its waiting ones", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      // The queue begins with hundreds of jobs of the account that has its share.
      for (let n = 0; n < 300; n += 1) await llm.enqueue({ ...enqueuing(`x${1_000 + n}`), ...big });
      for (const id of ["y1", "y2"]) await llm.enqueue({ ...enqueuing(id, { response: { accountId: "a2" } }), ...big });
      await at.corrupt("UPDATE responses SET turn = turn + 500 WHERE account_id = 'a2'");
      const two = { accountMax: 2 };
      expect(idsOf(await llm.jobsTake(taking("n1", { ...two, max: 1 })))).toEqual(["x1000"]);
      expect(idsOf(await llm.jobsTake(taking("n2", two)))).toEqual(["x1001", "y1", "y2"]);
      expect(idsOf(await llm.jobsTake(taking("n3", two)))).toEqual([]);
      await llm.complete(completion("x1000"));
      expect(idsOf(await llm.jobsTake(taking("n3", two)))).toEqual(["x1002"]);
    }, 20_000);

    test("a process is known by what it runs and by the number that it raises; one that ended is forgotten when nothing of it runs", async () => {
      await using at = await opened(name);
      const { llm } = at.store;
      const beat = (owner: string) => llm.ownerBeat({ owner });
      const owners = async () => {
        const found = await llm.owners();
        return Array.isArray(found) ? found.map(({ owner, beat: count }) => `${owner} ${count}`).sort() : found;
      };
      await beat("n1");
      await beat("n1");
      await beat("n2");
      await llm.submit(submission("live", { response: { object: "{}" } }));
      await llm.submit(submission("silent", {}, "n3"));
      await llm.submit(submission("silent-2", {}, "n3"));
      await llm.enqueue(enqueuing("job"));
      await llm.enqueue(enqueuing("queued"));
      await llm.jobsTake(taking("n1", { max: 1 }));
      // The third never said that it lives.
      expect(await owners()).toEqual(["n1 2", "n2 1", "n3 0"]);
      const of = { accountId: "a1" };
      expect(await llm.orphans({ owner: "n1" })).toEqual([
        { ...of, id: "job", object: '{"id":"job","status":"in_progress"}', job: true },
        { ...of, id: "live", object: "{}", job: false },
      ]);
      expect([await llm.ownerForget({ owner: "n1" }), await llm.ownerForget({ owner: "n2" })]).toEqual([
        "forgotten",
        "forgotten",
      ]);
      expect(await owners()).toEqual(["n1 2", "n3 0"]);
      for (const id of ["live", "job"]) await llm.end(ending(id));
      for (const id of ["silent", "silent-2"]) await llm.end(ending(id, { owner: "n3" }));
      await llm.ownerForget({ owner: "n1" });
      expect([await owners(), await llm.orphans({ owner: "n1" })]).toEqual([[], []]);
      expect(await counts(at.store)).toEqual({ paid: 0, held: 1 });
    });
  });
}
