/** Responses that the tests of the store work with. Each costs 600 nano-dollars at most, and `COST` in the end. */
import { expect } from "bun:test";
import type { NewCharge } from "../../../src/charge/store/records.ts";
import type { Completion, Ending, NewResponse, Submission, Submitted } from "../../../src/llm/store/records.ts";
import type { Store } from "../../../src/service/domains.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { funded } from "../../account/fake-store.ts";
import { type EngineName, place } from "../../store/engines.ts";
import { AT, COST, expectSound, newCharge, settled } from "../../store/rows.ts";

/** `expires_at` of a hold that its record ends (src/charge/charges.ts). */
export const NO_EXPIRY = Number.MAX_SAFE_INTEGER;

/** What a submission ends in that has its hold. */
export const HELD: Submitted = { is: "held" };

interface Changes {
  readonly response?: Partial<NewResponse>;
  readonly charge?: Partial<NewCharge>;
}

const begun = (id: string) => JSON.stringify({ id, status: "in_progress" });
export const answer = (id: string) => JSON.stringify({ id, status: "completed" });

/** A live response of the key `k` and its id, run by the node `n1`. */
export function submission(id: string, { response, charge }: Changes = {}, owner = "n1"): Submission {
  const accountId = response?.accountId ?? "a1";
  const fresh = { id, accountId, model: "m1", key: `k${id}`, digest: new Uint8Array(32).fill(3), createdAt: AT };
  return {
    owner,
    response: { ...fresh, object: undefined, hidden: false, ...response },
    charge: newCharge(id, { accountId, expiresAt: NO_EXPIRY, ...charge }),
  };
}

/** A background job, likewise; five of an account, nine of all. */
export function enqueuing(id: string, changes: Changes = {}) {
  const { response, charge } = submission(id, changes);
  const object = begun(id);
  return { charge, at: AT, response: { ...response, object }, request: `{"of":"${id}"}`, accountMax: 5, allMax: 9 };
}

export function completion(id: string, changes: Partial<Completion> = {}): Completion {
  const { session: _, observation: __, ...settlement } = settled(id);
  return { ...settlement, owner: "n1", object: answer(id), estimated: false, ...changes };
}

export function ending(id: string, changes: Partial<Ending> = {}): Ending {
  return { id, accountId: "a1", owner: "n1", at: AT + 1, object: undefined, key: "terminal", ...changes };
}

export function taking(owner: string, changes: Partial<Parameters<Store["llm"]["jobsTake"]>[0]> = {}) {
  return { owner, known: [], max: 100, accountMax: 1_000, modelMax: 1_000, nowMs: 1_000 * AT, ...changes };
}

/** Jobs that were taken, by id. */
export function idsOf(taken: { readonly jobs: readonly { readonly id: string }[] } | StoreDown): string[] {
  if (taken instanceof StoreDown) throw new Error(taken.reason);
  return taken.jobs.map(({ id }) => id);
}

/** A store with the accounts `a1`, `a2`, `a3`. Its ledger is sound at the end of the test, whatever was done. `before`: SQL. */
export async function opened(engine: EngineName, before?: string) {
  const at = await place(engine);
  if (before !== undefined) await at.corrupt(before);
  const first = await at.open();
  for (const id of ["a1", "a2", "a3"]) await first.accounts.accountAdd(funded(id, `${id}@example.org`));
  const one = {
    ...at,
    store: first,
    /** Opens it anew, like the next process. */
    reopen: async () => {
      await one.store.close();
      one.store = await at.open();
    },
    /** The row, without what only the database needs. */
    row: async (id: string): Promise<Record<string, unknown> | undefined> => {
      const [row] = await at.rows(
        `SELECT state, owner, key, request, object, estimated, ended_at FROM responses WHERE id = '${id}'`,
      );
      const number = (value: unknown) => (value === null ? null : Number(value));
      return row && { ...row, estimated: number(row.estimated), ended_at: number(row.ended_at) };
    },
    /** Ids of charges that are held. */
    held: async () => {
      const rows = await at.rows("SELECT id FROM charges WHERE settled_at IS NULL ORDER BY id");
      return rows.map(({ id }) => String(id));
    },
    [Symbol.asyncDispose]: async () => {
      await expectSound(one.store);
      await at[Symbol.asyncDispose]();
    },
  };
  return one;
}

/** What the account has paid and what it holds, in responses. */
export async function counts(store: Store, id = "a1"): Promise<{ paid: number; held: number }> {
  const account = await store.accounts.accountById(id);
  if (!account || account instanceof StoreDown) throw new Error("no account");
  expect([account.settled % COST, account.held % 600n]).toEqual([0n, 0n]);
  return { paid: Number(account.settled / COST), held: Number(account.held / 600n) };
}
