/** The list of runs, and what an account uses, on both stores of records. */
import { expect } from "bun:test";
import { monthOf, monthStart } from "../../../src/std/calendar.ts";
import { onStores, RECORDS } from "../stage.ts";

onStores(RECORDS, {}, (test) => {
  test("pages are the newest first, each run once, of all robots or of one", async ({ at, ann }) => {
    const made: string[] = [];
    for (const index of Array(7).keys()) {
      const run = `${index % 3 === 0 ? "arm" : "Leg"}/run-${index}`;
      await ann.completed(run, { a: "12345" });
      made.unshift(run);
      // Some of the same second.
      if (index % 2 === 0) at.clock.aheadSeconds += 2;
    }
    await ann.put("open", "a", "1");
    const pages = async (query: string, limit: number) => {
      const found: string[] = [];
      for (let after = ""; ; ) {
        const { json, said } = await ann.list(`?limit=${limit}${query}${after}`);
        expect(said).toBe("200");
        expect(json.data.length).toBeLessThanOrEqual(limit);
        found.push(...json.data.map((one) => `${Reflect.get(one, "robot")}/${one.run}`));
        expect(json).toMatchObject({ has_more: json.next !== null });
        if (json.next === null) return found;
        after = `&after=${encodeURIComponent(json.next)}`;
      }
    };
    for (const limit of [1, 2, 3, 7, 8, 1_000]) expect(await pages("", limit)).toEqual(made);
    const ofArm = made.filter((run) => run.startsWith("arm/"));
    for (const limit of [1, 2, 3, 1_000]) expect(await pages("&robot=arm", limit)).toEqual(ofArm);
    expect(await pages("&robot=arms", 10)).toEqual([]);
    // A run that is deleted between two pages moves none of the others.
    const first = await ann.list("?limit=3");
    await ann.erase(made[2] ?? "");
    const second = await ann.list(`?limit=10&after=${first.json.next}`);
    expect(second.json.data.length).toBe(4);
  });

  test("what a query says that is not allowed is 422 with its parameter", async ({ ann }) => {
    const wrong: readonly (readonly [string, string])[] = [
      ["?limit=0", "limit"],
      ["?limit=1001", "limit"],
      ["?limit=-1", "limit"],
      ["?limit=1.5", "limit"],
      ["?limit=x", "limit"],
      ["?limit=", "limit"],
      ["?limit=1&limit=2", "limit"],
      ["?robot=", "robot"],
      ["?robot=-a", "robot"],
      ["?robot=a%00", "robot"],
      [`?robot=${"a".repeat(129)}`, "robot"],
      ["?after=x", "after"],
      ["?after=1-run_%00", "after"],
      ["?after=1'--", "after"],
    ];
    for (const [query, param] of wrong) {
      const { said, json } = await ann.list(query);
      expect([query, said, json.error.param]).toEqual([query, "422 invalid_request", param]);
    }
    for (const query of ["?limit=1000", "?limit=1", `?robot=${"a".repeat(128)}`, "?other=1"]) {
      expect([query, (await ann.list(query)).said]).toEqual([query, "200"]);
    }
  });

  test("usage has stored and reserved bytes, runs, and the month's bytes and requests", async ({ at, ann }) => {
    const month = monthOf(Math.floor(at.clock.unixMs() / 1000));
    const nothing = { start: monthStart(month), uploaded_bytes: 0, downloaded_bytes: 0, requests: 0 };
    const empty = { stored_bytes: 0, reserved_bytes: 0, quota_bytes: 100 * 2 ** 30, runs: 0, month: nothing };
    expect((await ann.usage()).body).toEqual({ object: "robot.usage", ...empty });
    const manifest = (await ann.completed("one", { a: "12345", b: "" })).bytes.length;
    await ann.put("two", "a", "123");
    await ann.put("two", "a", "1234");
    await ann.sent("two", "b", "123456789");
    await ann.get("one", "a");
    await ann.get("one", "a", { range: "bytes=1-2" });
    await ann.send("HEAD", "/v1/robot/runs/arm/one/files/a");
    // Refused ones do not count.
    await ann.get("one", "a", { range: "bytes=5-" });
    await ann.put("one", "a", "1");
    const { json } = await ann.usage();
    const uploaded_bytes = 5 + 3 + 4 + 9;
    const counted = { ...nothing, uploaded_bytes, downloaded_bytes: 5 + 2, requests: 1 + 3 + 2 + 2 + 3 };
    // Two runs, three files and an upload.
    const stored_bytes = 9 + 6 * 1024 + manifest;
    const totals = { stored_bytes, reserved_bytes: 9, quota_bytes: 100 * 2 ** 30, runs: 1, month: counted };
    expect(json as unknown).toEqual({ object: "robot.usage", ...totals });
    // Another month begins at nothing; what is stored stays.
    at.clock.aheadSeconds += 32 * 86_400;
    expect((await ann.usage()).json).toMatchObject({ stored_bytes, month: { uploaded_bytes: 0, requests: 0 } });
    at.clock.aheadSeconds -= 32 * 86_400;
    expect((await ann.usage()).json.month.requests).toBe(12);
  });
});
