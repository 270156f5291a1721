/** The domain of people: one-time links, sign-ins, device logins, and the throttling of tries. */
import type { DomainOf, Slice } from "../../store/domain.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import { deviceAdd, deviceByUserCode, deviceDecide, devicePoll } from "./device-logins.ts";
import { identitiesOf, identityConnect, identityEnd, identityEnter } from "./identities.ts";
import { linkAdd, linkByToken, linkRedeem, passwordReset, passwordSet } from "./links.ts";
import { signInAdd, signInByToken, signInProve, signInRemove } from "./sign-ins.ts";

/** True while no person can sign in with a password. */
function* operatorMissing(): Steps<boolean> {
  return (yield* first<object>("SELECT id FROM accounts WHERE password IS NOT NULL LIMIT 1")) === undefined;
}

/** Counts one attempt; more than `max` in the window are refused. Not durable. */
function* attempt(tried: {
  name: string;
  max: number;
  windowSeconds: number;
  now: number;
}): Steps<"allowed" | { readonly refusedSeconds: number }> {
  const { name, max, windowSeconds, now } = tried;
  const resetsAt = now + windowSeconds;
  const row = yield* first<{ count: bigint; resets_at: bigint }>(
    `INSERT INTO attempts (name, count, resets_at) VALUES ($name, 1, $resetsAt)
     ON CONFLICT (name) DO UPDATE SET
       count = CASE WHEN attempts.resets_at <= $now THEN 1 ELSE attempts.count + 1 END,
       resets_at = CASE WHEN attempts.resets_at <= $now THEN excluded.resets_at ELSE attempts.resets_at END
     RETURNING count, resets_at`,
    { name, now, resetsAt },
  );
  if (!row || Number(row.count) <= max) return "allowed";
  return { refusedSeconds: Math.max(1, Number(row.resets_at) - now) };
}

function* peopleForget({ now }: { now: number }): Steps<"done"> {
  for (const table of ["links", "sign_ins", "device_logins"]) {
    yield* changes(`DELETE FROM ${table} WHERE expires_at <= $1`, now);
  }
  yield* changes("DELETE FROM attempts WHERE resets_at <= $1", now);
  return "done";
}

const reads = { operatorMissing, linkByToken, signInByToken, deviceByUserCode, identitiesOf };

const writes = {
  linkAdd,
  linkRedeem,
  passwordSet,
  passwordReset,
  signInAdd,
  signInProve,
  signInRemove,
  attempt,
  peopleForget,
  deviceAdd,
  deviceDecide,
  devicePoll,
  identityEnter,
  identityConnect,
  identityEnd,
};

export const people = {
  reads,
  writes,
  notDurable: ["attempt"],
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type PeopleStore = Slice<typeof people>;
