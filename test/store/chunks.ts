/** What chunks leave behind: tests that hold for each engine (store.test.ts). */
import { expect, test } from "bun:test";
import { funded } from "../account/fake-store.ts";
import { type EngineName, place } from "./engines.ts";
import { answered, COST, chunk, digest, expectSound, money, run, session, settled, TEXT } from "./rows.ts";

export function chunksTests(engine: EngineName): void {
  test("a chunk's session and answer are kept with its settlement, over a restart", async () => {
    await using at = await place(engine);
    const first = await at.open();
    await first.accountAdd(funded("a1", "one@example.org"));
    await chunk(first, "o", {}, 100);
    await chunk(first, "p", { observation: undefined }, 105);
    const alone = answered("alone", { sessionId: "", step: null, answer: undefined });
    await chunk(first, "alone", { session: undefined, observation: alone }, 106);
    await first.close();
    const second = await at.open();
    const reply = { digest, generationId: "gen_o", step: 3, answer: TEXT };
    expect([
      await second.sessionLastAt(session),
      await second.sessionLastAt({ ...session, sessionId: "t" }),
      await second.observation({ ...session, observationId: "o" }),
      await second.observation({ ...session, observationId: "p" }),
      await second.observation({ ...session, sessionId: "", observationId: "alone" }),
    ]).toEqual([
      105,
      undefined,
      reply,
      undefined,
      { ...reply, generationId: "gen_alone", step: null, answer: undefined },
    ]);
    await expectSound(second);
  });

  test("a session is known from when a connection opens it, durably, and its records go as those of others", async () => {
    await using at = await place(engine);
    const first = await at.open();
    await first.accountAdd(funded("a1", "one@example.org"));
    expect(await first.sessionOpen({ ...session, at: 100 })).toBe("kept");
    await first.close();
    const second = await at.open();
    expect(await second.sessionLastAt(session)).toBe(100);
    await chunk(second, "o", {}, 105);
    expect(await second.sessionOpen({ ...session, at: 110 })).toBe("kept");
    expect(await second.sessionLastAt(session)).toBe(110);
    while ((await second.chunksForget({ repliesBefore: 111, recordsBefore: 111 })) === "more");
    expect(await second.sessionLastAt(session)).toBeUndefined();
  });

  test("an observation that was answered before is known: nothing of the second chunk is kept or charged", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accountAdd(funded("a1", "one@example.org"));
    expect(await chunk(store, "o", {}, 100)).toBe("kept");
    await store.hold(run("gen_2"));
    const again = answered("o", { answer: { ...TEXT, head: "other" }, generationId: "gen_2" });
    expect(await store.settleChunk(settled("gen_2", { session, observation: again, at: 200 }))).toBe("known");
    expect([
      await store.observation({ ...session, observationId: "o" }),
      await store.sessionLastAt(session),
      await money(store),
    ]).toMatchObject([{ reply: "text" }, 100, { settled: COST, held: 600n }]);
  });

  test("a chunk that is not held leaves no answer behind: a later run may answer the observation", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accountAdd(funded("a1", "one@example.org"));
    expect(await store.settleChunk(settled("gen_o", { session, observation: answered("o") }))).toBe("not_held");
    expect([await store.observation({ ...session, observationId: "o" }), await store.sessionLastAt(session)]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await chunk(store, "o", {}, 100)).toBe("kept");
    await expectSound(store);
  });

  test("replies go when their session has ended for long enough, records a day later, and nothing before", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accountAdd(funded("a1", "one@example.org"));
    const other = { ...session, sessionId: "t" };
    await chunk(store, "o", {}, 10);
    await chunk(store, "p", {}, 100);
    await chunk(store, "q", { session: other, observation: { ...answered("q"), ...other } }, 50);
    await chunk(store, "alone", { session: undefined, observation: answered("alone", { sessionId: "" }) }, 50);
    const replies = async () => {
      const keys = [
        { ...session, observationId: "o" },
        { ...session, observationId: "p" },
        { ...other, observationId: "q" },
        { ...session, sessionId: "", observationId: "alone" },
      ];
      const found = await Promise.all(keys.map((one) => store.observation(one)));
      return found.map((row) => (row && "reply" in row ? row.reply : "forgotten"));
    };
    // Session s was last active at 100, although its first answer is older.
    await store.chunksForget({ repliesBefore: 50, recordsBefore: 0 });
    expect(await replies()).toEqual(["text", "text", "text", "text"]);
    await store.chunksForget({ repliesBefore: 51, recordsBefore: 0 });
    expect(await replies()).toEqual(["text", "text", null, null]);
    await store.chunksForget({ repliesBefore: 101, recordsBefore: 51 });
    expect([await replies(), await store.sessionLastAt(other), await store.sessionLastAt(session)]).toEqual([
      [null, null, "forgotten", "forgotten"],
      undefined,
      100,
    ]);
  });

  test("forgetting is done in bounded parts, until nothing is left", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accountAdd(funded("a1", "one@example.org"));
    const many = Array.from({ length: 600 }, (_, index) => `o${index}`);
    await Promise.all(
      many.map((id) => chunk(store, id, { session: undefined, observation: answered(id, { sessionId: "" }) }, 1)),
    );
    const outcomes: unknown[] = [];
    while (outcomes.at(-1) !== "done") outcomes.push(await store.chunksForget({ repliesBefore: 9, recordsBefore: 9 }));
    // 256 rows a time, of 600 replies and as many records.
    expect(outcomes).toEqual(["more", "more", "more", "more", "done"]);
    expect(await store.observation({ ...session, sessionId: "", observationId: "o599" })).toBeUndefined();
  });
}
