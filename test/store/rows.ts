/** Rows that the tests of the store work with. */
import { expect } from "bun:test";
import { type ChunkRecord, type NewRun, type Store, StoreDown } from "../../src/store/store.ts";

export const key = {
  publicId: "p".repeat(12),
  sha256: new Uint8Array(32).fill(7),
  accountId: "a1",
  name: "n",
  createdAt: 5,
};
export const AT = 1_795_000_000;
const rates = { prompt: 3n, cachedPrompt: 1n, completion: 10n };
const usage = { promptTokens: 100, cachedTokens: 40, completionTokens: 30 };
/** 60 × 3 + 40 × 1 + 30 × 10. */
export const COST = 520n;

export function run(runId: string, changes: Partial<NewRun> = {}): NewRun {
  const when = { at: AT, day: 20_775, month: 202_611, expiresAt: AT + 40 };
  return { runId, accountId: "a1", model: "m1", amount: 600n, rates, ...when, ...changes };
}

export function settled(runId: string, changes: Partial<ChunkRecord> = {}): ChunkRecord {
  return {
    runId,
    accountId: "a1",
    usage,
    cost: COST,
    session: undefined,
    observation: undefined,
    at: AT + 1,
    ...changes,
  };
}

export const session = { accountId: "a1", model: "m1", sessionId: "s" };
export const TEXT = { head: "text", rows: new Uint8Array([1, 2, 3, 4]) };
export const digest = new Uint8Array(32).fill(9);

export function answered(observationId: string, changes: object = {}): NonNullable<ChunkRecord["observation"]> {
  return {
    ...session,
    observationId,
    digest,
    generationId: `gen_${observationId}`,
    step: 3,
    answer: TEXT,
    ...changes,
  };
}

/** Holds and settles a chunk; its run's id is `gen_` and the observation's. */
export async function chunk(store: Store, observationId: string, changes: Partial<ChunkRecord> = {}, at = AT) {
  const runId = `gen_${observationId}`;
  await store.hold(run(runId, { at }));
  return await store.settleChunk(settled(runId, { session, observation: answered(observationId), at, ...changes }));
}

/** The account's money, in nano-dollars. */
export async function money(store: Store, id = "a1") {
  const account = await store.accountById(id);
  if (!account || account instanceof StoreDown) throw new Error("no account");
  const { credits, settled: spent, held, month, monthSettled } = account;
  return { credits, settled: spent, held, month, monthSettled };
}

export async function expectSound(store: Store): Promise<void> {
  expect(await store.ledgerCheck("all")).toMatchObject({ sum: 0n, problem: undefined });
}
