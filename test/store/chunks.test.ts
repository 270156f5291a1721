import { expect, test } from "bun:test";
import { Problem } from "../../src/error.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import type { ChunkRecord, Store } from "../../src/store/store.ts";
import { temporaryFolder } from "./temporary.ts";

async function opened(dir: string): Promise<Store> {
  const store = await openSqliteStore(dir);
  if (store instanceof Problem) throw new Error(store.message);
  await store.accountAdd({ id: "a1", email: "one@example.org", createdAt: 4 });
  return store;
}

const session = { accountId: "a1", model: "m1", sessionId: "s" };
const digest = new Uint8Array(32).fill(9);

function answered(observationId: string, changes: object = {}): NonNullable<ChunkRecord["observation"]> {
  return { ...session, observationId, digest, generationId: "gen_1", step: 3, reply: "text", ...changes };
}

const kept = { digest, generationId: "gen_1", step: 3, reply: "text" };

test("a session's activity and its answer are kept over a restart", async () => {
  await using dir = await temporaryFolder();
  const first = await opened(dir.path);
  await first.chunkKeep({ session, observation: answered("o"), at: 100 });
  await first.chunkKeep({ session, observation: undefined, at: 105 });
  await first.chunkKeep({ session: undefined, observation: answered("o", { sessionId: "", step: null }), at: 106 });
  await first.close();
  const second = await opened(dir.path);
  expect([
    await second.sessionLastAt(session),
    await second.sessionLastAt({ ...session, sessionId: "t" }),
    await second.observation({ ...session, observationId: "o" }),
    await second.observation({ ...session, observationId: "p" }),
    await second.observation({ ...session, sessionId: "", observationId: "o" }),
  ]).toEqual([105, undefined, kept, undefined, { ...kept, step: null }]);
  await second.close();
});

test("replies go when their session has ended for long enough, records a day later, and nothing before", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  const other = { ...session, sessionId: "t" };
  await store.chunkKeep({ session, observation: answered("o"), at: 10 });
  await store.chunkKeep({ session, observation: answered("p"), at: 100 });
  await store.chunkKeep({ session: other, observation: { ...answered("o"), ...other }, at: 50 });
  await store.chunkKeep({ session: undefined, observation: answered("alone", { sessionId: "" }), at: 50 });
  const replies = async () => {
    const keys = [
      { ...session, observationId: "o" },
      { ...session, observationId: "p" },
      { ...other, observationId: "o" },
      { ...session, sessionId: "", observationId: "alone" },
    ];
    const rows = await Promise.all(keys.map((key) => store.observation(key)));
    return rows.map((row) => (row && "reply" in row ? row.reply : "forgotten"));
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
  await store.close();
});

test("an observation that was answered before is known, and nothing of its chunk is kept", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  expect(await store.chunkKeep({ session, observation: answered("o"), at: 100 })).toBe("kept");
  const again = answered("o", { reply: "other", generationId: "gen_2" });
  expect(await store.chunkKeep({ session, observation: again, at: 200 })).toBe("known");
  expect([await store.observation({ ...session, observationId: "o" }), await store.sessionLastAt(session)]).toEqual([
    kept,
    100,
  ]);
  await store.close();
});

test("forgetting is done in bounded parts, until nothing is left", async () => {
  await using dir = await temporaryFolder();
  const store = await opened(dir.path);
  const many = Array.from({ length: 600 }, (_, index) => `o${index}`);
  await Promise.all(
    many.map((id) => store.chunkKeep({ session: undefined, observation: answered(id, { sessionId: "" }), at: 1 })),
  );
  const outcomes: unknown[] = [];
  while (outcomes.at(-1) !== "done") outcomes.push(await store.chunksForget({ repliesBefore: 9, recordsBefore: 9 }));
  // 256 rows a time, of 600 replies and as many records.
  expect(outcomes).toEqual(["more", "more", "more", "more", "done"]);
  expect(await store.observation({ ...session, sessionId: "", observationId: "o599" })).toBeUndefined();
  await store.close();
});
