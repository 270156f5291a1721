/** The closed list of operations, each with its steps. Guards stand in the statements, so none raises on what a caller may do. */
import * as accounts from "./accounts.ts";
import * as chunks from "./chunks.ts";
import { ledgerCheck } from "./ledger.ts";
import * as money from "./money.ts";
import * as people from "./people.ts";
import type { Steps } from "./steps.ts";
import type { Reads, Writes } from "./store.ts";

type Operations<T> = {
  readonly [K in keyof T]: T[K] extends (argument: infer A) => infer R ? (argument: A) => Steps<R> : never;
};

export const WRITES: Operations<Writes> = {
  accountAdd: accounts.accountAdd,
  keyAdd: accounts.keyAdd,
  keyRevoke: accounts.keyRevoke,
  keysUsed: accounts.keysUsed,
  spendLimit: accounts.spendLimit,
  credit: money.pay,
  hold: money.hold,
  release: money.release,
  holdsExpire: money.holdsExpire,
  usageForget: money.usageForget,
  settleChunk: chunks.settleChunk,
  sessionOpen: chunks.sessionOpen,
  chunksForget: chunks.chunksForget,
  linkAdd: people.linkAdd,
  linkRedeem: people.linkRedeem,
  passwordSet: people.passwordSet,
  signInAdd: people.signInAdd,
  signInRemove: people.signInRemove,
  deviceAdd: people.deviceAdd,
  deviceDecide: people.deviceDecide,
  devicePoll: people.devicePoll,
  attempt: people.attempt,
  peopleForget: people.peopleForget,
};

export const READS: Operations<Reads> = {
  accountByEmail: accounts.accountByEmail,
  accountById: accounts.accountById,
  accounts: accounts.accounts,
  keyByPublicId: accounts.keyByPublicId,
  keysOf: accounts.keysOf,
  mayHaveKeys: accounts.mayHaveKeys,
  keysRevision: accounts.keysRevision,
  usageDays: money.usageDays,
  ledgerCheck,
  sessionLastAt: chunks.sessionLastAt,
  observation: chunks.observation,
  operatorMissing: people.operatorMissing,
  linkByToken: people.linkByToken,
  signInByToken: people.signInByToken,
  deviceByUserCode: people.deviceByUserCode,
};

/** Atomic, but not durable when they resolve: a crash gives the money back, which is right. */
export const NOT_DURABLE: ReadonlySet<keyof Writes> = new Set(["hold", "release", "keysUsed", "attempt"]);

/** An object with every operation of the list, each running as `run` says. */
export function operationsOf<T extends object>(
  list: Operations<T>,
  run: (name: keyof T, steps: (argument: unknown) => Steps<unknown>) => (argument: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(list).map(([name, steps]) => [
    name,
    run(name as keyof T, steps as (argument: unknown) => Steps<unknown>),
  ]);
  return Object.fromEntries(entries);
}
