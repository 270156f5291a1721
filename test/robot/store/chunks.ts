/** What chunks leave behind: tests that hold for each engine (store.test.ts). */
import { expect, test } from "bun:test";
import { funded } from "../../account/fake-store.ts";
import { type EngineName, place } from "../../store/engines.ts";
import {
  ANSWER,
  answered,
  COST,
  chunk,
  digest,
  expectSound,
  money,
  newCharge,
  session,
  settled,
} from "../../store/rows.ts";

export function chunksTests(engine: EngineName): void {
  test("a chunk's session and answer are kept with its settlement, over a restart", async () => {
    await using at = await place(engine);
    const first = await at.open();
    await first.accounts.accountAdd(funded("a1", "one@example.org"));
    await chunk(first, "o", {}, 100);
    await chunk(first, "p", { observation: undefined }, 105);
    const alone = answered("alone", { sessionId: "", step: null, answer: undefined });
    await chunk(first, "alone", { session: undefined, observation: alone }, 106);
    await first.close();
    const second = await at.open();
    const reply = { digest, generationId: "gen_o", step: 3, answer: ANSWER };
    expect([
      await second.robot.sessionLastAt(session),
      await second.robot.sessionLastAt({ ...session, sessionId: "t" }),
      await second.robot.observation({ ...session, observationId: "o" }),
      await second.robot.observation({ ...session, observationId: "p" }),
      await second.robot.observation({ ...session, sessionId: "", observationId: "alone" }),
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
    await first.accounts.accountAdd(funded("a1", "one@example.org"));
    expect(await first.robot.sessionOpen({ ...session, at: 100 })).toBe("kept");
    await first.close();
    const second = await at.open();
    expect(await second.robot.sessionLastAt(session)).toBe(100);
    await chunk(second, "o", {}, 105);
    expect(await second.robot.sessionOpen({ ...session, at: 110 })).toBe("kept");
    expect(await second.robot.sessionLastAt(session)).toBe(110);
    while ((await second.robot.chunksForget({ repliesBefore: 111, recordsBefore: 111 })) === "more");
    expect(await second.robot.sessionLastAt(session)).toBeUndefined();
  });

  test("an observation that was answered before is known: nothing of the second chunk is kept or charged", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    expect(await chunk(store, "o", {}, 100)).toBe("kept");
    await store.charges.hold(newCharge("gen_2"));
    const again = answered("o", { answer: { ...ANSWER, head: "other" }, generationId: "gen_2" });
    expect(await store.robot.settleChunk(settled("gen_2", { session, observation: again, at: 200 }))).toBe("known");
    expect([
      await store.robot.observation({ ...session, observationId: "o" }),
      await store.robot.sessionLastAt(session),
      await money(store),
    ]).toMatchObject([{ answer: ANSWER }, 100, { settled: COST, held: 600n }]);
  });

  test("a chunk that is not held leaves no answer behind: a later inference may answer the observation", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    expect(await store.robot.settleChunk(settled("gen_o", { session, observation: answered("o") }))).toBe("not_held");
    expect([
      await store.robot.observation({ ...session, observationId: "o" }),
      await store.robot.sessionLastAt(session),
    ]).toEqual([undefined, undefined]);
    expect(await chunk(store, "o", {}, 100)).toBe("kept");
    await expectSound(store);
  });

  test("replies go when their session has ended for long enough, records a day later, and nothing before", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
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
      const found = await Promise.all(keys.map((one) => store.robot.observation(one)));
      return found.map((row) => (row && "answer" in row ? row.answer?.head : "forgotten"));
    };
    // Session s was last active at 100, although its first answer is older.
    await store.robot.chunksForget({ repliesBefore: 50, recordsBefore: 0 });
    expect(await replies()).toEqual(["{}", "{}", "{}", "{}"]);
    await store.robot.chunksForget({ repliesBefore: 51, recordsBefore: 0 });
    expect(await replies()).toEqual(["{}", "{}", undefined, undefined]);
    await store.robot.chunksForget({ repliesBefore: 101, recordsBefore: 51 });
    expect([await replies(), await store.robot.sessionLastAt(other), await store.robot.sessionLastAt(session)]).toEqual(
      [[undefined, undefined, "forgotten", "forgotten"], undefined, 100],
    );
  });

  test("forgetting is done in bounded parts, until nothing is left", async () => {
    await using at = await place(engine);
    const store = await at.open();
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    const many = Array.from({ length: 600 }, (_, index) => `o${index}`);
    await Promise.all(
      many.map((id) => chunk(store, id, { session: undefined, observation: answered(id, { sessionId: "" }) }, 1)),
    );
    const outcomes: unknown[] = [];
    while (outcomes.at(-1) !== "done")
      outcomes.push(await store.robot.chunksForget({ repliesBefore: 9, recordsBefore: 9 }));
    // 256 rows a time, of 600 replies and as many records.
    expect(outcomes).toEqual(["more", "more", "more", "more", "done"]);
    expect(await store.robot.observation({ ...session, sessionId: "", observationId: "o599" })).toBeUndefined();
  });
}
