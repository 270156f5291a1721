/** What the store keeps of accounts and their keys. */

export interface Account {
  readonly id: string;
  readonly email: string;
  readonly createdAt: number;
  readonly paymentMethod: boolean;
  /** An operator has made the account or confirmed its e-mail; nobody has that of an open sign-up. */
  readonly verified: boolean;
  /** All that was ever paid in, less what was taken back. */
  readonly credits: bigint;
  /** All that was ever settled. */
  readonly settled: bigint;
  /** The most that open charges may cost. */
  readonly held: bigint;
  /** Per month. */
  readonly spendLimit: bigint | undefined;
  /** The latest month in which something was settled, and how much. */
  readonly month: number;
  readonly monthSettled: bigint;
  /** argon2id; undefined: nobody can sign in to it. */
  readonly password: string | undefined;
}

type Chosen = "id" | "email" | "createdAt" | "spendLimit" | "paymentMethod" | "verified" | "password";

export interface NewAccount extends Pick<Account, Chosen> {
  /** Paid in from the start; its entries are those of the account's id. */
  readonly credit: bigint;
}

/** A stored API key: its public id and the SHA-256 of the whole key. */
export interface KeyRecord {
  readonly publicId: string;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
  readonly accountId: string;
  readonly name: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | undefined;
  /** undefined while the key is valid. */
  readonly revokedAt: number | undefined;
}

export type NewKey = Omit<KeyRecord, "lastUsedAt" | "revokedAt">;

/** `accountId`: only a key of that account. */
export interface Revocation {
  readonly publicId: string;
  readonly accountId?: string | undefined;
  readonly at: number;
}

/** Why an account gets no further key: it has neither payment method nor credit, or as many keys as it may have. */
export type NoKeys = "account_unknown" | "payment_required" | "too_many";
