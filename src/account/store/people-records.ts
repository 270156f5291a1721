/** What the store keeps of people: one-time links, sign-ins, device logins. Tokens and codes are kept as SHA-256 alone, 32 bytes. */
import type { NewKey, NoKeys } from "./accounts-records.ts";

/** Times are of seen time (std/seen-clock.ts). */
export interface Link {
  readonly tokenSha256: Uint8Array;
  /** `operator`: makes the first account; `password`: sets the password of `accountId`. */
  readonly kind: "operator" | "password";
  readonly accountId: string | undefined;
  readonly expiresAt: number;
}

export interface SignIn {
  readonly tokenSha256: Uint8Array;
  readonly accountId: string;
  /** How the person signed in. */
  readonly method: "password" | "provider";
  readonly createdAt: number;
  /** When the person last proved to be the one. */
  readonly provedAt: number;
  readonly expiresAt: number;
}

/** A device that asks for a key. */
export interface DeviceLogin {
  readonly deviceSha256: Uint8Array;
  readonly userCodeSha256: Uint8Array;
  /** The name that the device gives. */
  readonly deviceName: string;
  /** Address of the request. */
  readonly address: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly intervalSeconds: number;
}

export type DevicePoll =
  | "unknown"
  | "expired"
  | "pending"
  | "slow_down"
  | "denied"
  | NoKeys
  | { readonly accountId: string };

/** A use of a one-time token. */
export interface TokenUse {
  readonly tokenSha256: Uint8Array;
  /** Seen time. */
  readonly now: number;
}

export interface LinkUse extends TokenUse {
  readonly newAccountId: string;
  /** Creation of the new account, by the wall clock. */
  readonly createdAt: number;
  readonly email: string;
  readonly password: string;
  /** Whether the account's keys end with its old password. */
  readonly revokeKeys: boolean;
}

/** A new password, set by the person who is signed in with `keepSignIn`. */
export interface PasswordChange {
  readonly accountId: string;
  readonly password: string;
  readonly keepSignIn: Uint8Array;
  readonly revokeKeys: boolean;
  readonly now: number;
}

/** An operator's reset: `password` is nobody's, and the link sets another one. */
export interface PasswordReset {
  readonly link: Link & { readonly accountId: string };
  readonly password: string;
  readonly revokeKeys: boolean;
  readonly now: number;
}

export interface DeviceDecision {
  readonly userCodeSha256: Uint8Array;
  readonly approve: boolean;
  readonly accountId: string;
  readonly signInSha256: Uint8Array;
  readonly now: number;
}

/** `now` is of seen time. `key` is added when the login is approved, with the device's name, to the account of the approving sign-in. */
export interface DevicePolling {
  readonly deviceSha256: Uint8Array;
  readonly key: Omit<NewKey, "accountId" | "name">;
  readonly now: number;
}
