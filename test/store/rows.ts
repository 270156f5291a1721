/** Rows that the tests of the store work with. */
import { expect } from "bun:test";
import type { NewAccount } from "../../src/account/store/accounts.ts";
import type { NewCharge } from "../../src/charge/store/records.ts";
import type { ChunkSettlement } from "../../src/robot/store/records.ts";
import type { Store } from "../../src/service/domains.ts";
import { StoreDown } from "../../src/store/store.ts";
import { funded } from "../account/fake-store.ts";

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

export function newCharge(chargeId: string, changes: Partial<NewCharge> = {}): NewCharge {
  const when = { at: AT, day: 20_775, month: 202_611, expiresAt: AT + 40 };
  return { chargeId, accountId: "a1", item: "m1", amount: 600n, rates, ...when, ...changes };
}

export function settled(chargeId: string, changes: Partial<ChunkSettlement> = {}): ChunkSettlement {
  return {
    chargeId,
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
export const ANSWER = { head: "{}", rows: new Uint8Array([0, 0, 128, 63]) };
export const digest = new Uint8Array(32).fill(9);

export function answered(observationId: string, changes: object = {}): NonNullable<ChunkSettlement["observation"]> {
  return {
    ...session,
    observationId,
    digest,
    generationId: `gen_${observationId}`,
    step: 3,
    answer: ANSWER,
    ...changes,
  };
}

/** Holds and settles a chunk; its charge's id is `gen_` and the observation's. */
export async function chunk(store: Store, observationId: string, changes: Partial<ChunkSettlement> = {}, at = AT) {
  const chargeId = `gen_${observationId}`;
  await store.charges.hold(newCharge(chargeId, { at }));
  return await store.robot.settleChunk(
    settled(chargeId, { session, observation: answered(observationId), at, ...changes }),
  );
}

/** Adds the account `a1`, which has money unless `changes` says otherwise. */
export async function addAccount(store: Store, changes: Partial<NewAccount> = {}): Promise<void> {
  const { id = "a1" } = changes;
  expect(await store.accounts.accountAdd({ ...funded(id, `${id}@example.org`), ...changes })).toBe("added");
}

/** The account's money, in nano-dollars. */
export async function money(store: Store, id = "a1") {
  const account = await store.accounts.accountById(id);
  if (!account || account instanceof StoreDown) throw new Error("no account");
  const { credits, settled: spent, held, month, monthSettled } = account;
  return { credits, settled: spent, held, month, monthSettled };
}

export async function expectSound(store: Store): Promise<void> {
  expect(await store.charges.ledgerCheck()).toMatchObject({ sum: 0n, problem: undefined });
}
