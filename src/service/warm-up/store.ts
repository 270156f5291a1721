/** A store for observations that leave nothing behind: it knows one key, and keeps nothing. */
import { keyDigest, keyPublicId } from "../../account/key.ts";
import type { KeyRecord, NewAccount } from "../../account/store/accounts-records.ts";
import { type Run, slicesOf } from "../../store/domain.ts";
import { StoreDown, type WriteCall } from "../../store/store.ts";
import { DOMAINS, type Store } from "../domains.ts";

const ACCOUNT: NewAccount = {
  id: "acct_warm-up",
  email: "warm-up@localhost",
  createdAt: 0,
  credit: 1n << 60n,
  spendLimit: undefined,
  paymentMethod: false,
  verified: true,
  password: undefined,
};

/** The writes of an observation, and how they end when all goes well. */
const OUTCOMES: Readonly<Record<string, unknown>> = { "charges.hold": "held", "robot.settleChunk": "kept" };

export class WarmStore {
  /** What would have been written, beginning with the account. */
  readonly written: WriteCall[] = [{ key: "accounts.accountAdd", argument: ACCOUNT }];
  readonly store: Omit<Store, "exclusive" | "close">;

  /** `real` is asked what an observation asks it; it has neither the key nor the sessions. */
  constructor(key: string, real: Pick<Store, "accounts" | "robot">) {
    const down: Run = () => async () => new StoreDown("nothing is kept while the service warms up");
    const note: Run = (operation) => {
      const { key } = operation;
      if (!Object.hasOwn(OUTCOMES, key)) return down(operation);
      return async (argument) => {
        this.written.push({ key, argument });
        // What the operation answers (domain.ts); its type is lost in the table.
        return OUTCOMES[key] as never;
      };
    };
    const { accounts, robot, ...others } = slicesOf(DOMAINS, down, note);
    const record = recordOf(key);
    const keyByPublicId: Store["accounts"]["keyByPublicId"] = async (publicId) => {
      await real.accounts.keyByPublicId(publicId);
      return record;
    };
    const { sessionLastAt, observation } = real.robot;
    const [asked, known] = [{ sessionLastAt, observation }, { keyByPublicId }];
    const ping = async () => undefined;
    this.store = { ...others, accounts: { ...accounts, ...known }, robot: { ...robot, ...asked }, ping };
  }
}

function recordOf(key: string): KeyRecord {
  const publicId = keyPublicId(key) ?? "";
  const never = { lastUsedAt: undefined, revokedAt: undefined };
  return { publicId, sha256: keyDigest(key), accountId: ACCOUNT.id, name: "", createdAt: 0, ...never };
}
