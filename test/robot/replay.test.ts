import { expect, test } from "bun:test";
import { Replays, SeenIds } from "../../src/robot/replay.ts";
import { Failure } from "../../src/std/failure.ts";
import { fakeStore, funded } from "../account/fake-store.ts";

const id = { accountId: "a1", model: "m1", sessionId: "s", observationId: "o" };
const one = new Uint8Array(32).fill(1);
const other = new Uint8Array(32).fill(2);

async function stand() {
  const store = fakeStore();
  await store.accounts.accountAdd(funded("a1", "one@example.org"));
  await store.accounts.accountAdd(funded("a2", "two@example.org"));
  let runs = 0;
  const answered = async (head: string | undefined, changes: object = {}) => {
    runs += 1;
    const charge = { chargeId: `gen_${runs}`, accountId: "a1", item: "m1", amount: 0n };
    const answer = head === undefined ? undefined : { head, rows: new Uint8Array(4) };
    const rates = { prompt: 0n, cachedPrompt: 0n, completion: 0n };
    await store.charges.hold({ ...charge, rates, at: 1, day: 0, month: 197001, expiresAt: 9 });
    await store.robot.settleChunk({
      ...charge,
      usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0 },
      cost: 0n,
      session: undefined,
      observation: { ...id, digest: one, generationId: charge.chargeId, step: 3, answer, ...changes },
      at: 1,
    });
  };
  return { store, answered, replays: new Replays(store.robot) };
}

async function outcome(claimed: Awaited<ReturnType<Replays["claim"]>>) {
  if (claimed instanceof Failure) return [claimed.status, claimed.wireCode, claimed.param];
  return claimed.kind === "claim" ? "claim" : [claimed.generationId, claimed.step, claimed.answer.head];
}

test("an id that was never used may run; while it runs, the same content is 409 observation_outcome_unknown", async () => {
  const { replays } = await stand();
  const claim = await replays.claim(id, one);
  expect(await outcome(claim)).toBe("claim");
  expect(await outcome(await replays.claim(id, one))).toEqual([409, "observation_outcome_unknown", "observation_id"]);
  expect(await outcome(await replays.claim(id, other))).toEqual([409, "idempotency_conflict", "observation_id"]);
  if (!(claim instanceof Failure) && claim.kind === "claim") claim.release();
  expect([await outcome(await replays.claim(id, other)), replays.size]).toEqual(["claim", 1]);
});

test("a claim that is given back twice does not take another one's", async () => {
  const { replays } = await stand();
  const first = await replays.claim(id, one);
  if (first instanceof Failure || first.kind !== "claim") throw new Error("no claim");
  first.release();
  expect(await outcome(await replays.claim(id, new Uint8Array(one)))).toBe("claim");
  first.release();
  expect((await outcome(await replays.claim(id, one)))[0]).toBe(409);
});

test("ids are scoped to account, model and session; without session_id to account and model", async () => {
  const { replays, answered } = await stand();
  await answered("of the session");
  await answered("alone", { sessionId: "", step: null });
  const asked = [
    id,
    { ...id, sessionId: "" },
    { ...id, sessionId: "t" },
    { ...id, model: "m2" },
    { ...id, accountId: "a2" },
  ];
  const outcomes = await Promise.all(asked.map(async (key) => await outcome(await replays.claim(key, one))));
  expect(outcomes).toEqual([["gen_1", 3, "of the session"], ["gen_2", null, "alone"], "claim", "claim", "claim"]);
});

test("an id that was seen is always known, and one that was not is hardly ever taken for seen", () => {
  const ids = new SeenIds();
  const wrong = Array.from({ length: 1000 }, (_, step) => ids.see(`towel.${step}`)).filter(Boolean).length;
  expect(wrong).toBeLessThan(10);
  expect(Array.from({ length: 1000 }, (_, step) => ids.see(`towel.${step}`)).every(Boolean)).toBe(true);
});
