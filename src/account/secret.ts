/** Random tokens for sign-ins, links and device logins. The store has only their SHA-256. */
import { timingSafeEqual } from "node:crypto";
import { randomBase62 } from "../std/ids.ts";

/** 43 base62 characters hold 256 bits. */
const TOKEN_CHARS = 43;
const TOKEN = new RegExp(`^[0-9A-Za-z]{${TOKEN_CHARS}}$`);

export function makeToken(): string {
  return randomBase62(TOKEN_CHARS);
}

/** A text of another form is not looked up in the store. */
export function isToken(text: string | undefined): text is string {
  return text !== undefined && TOKEN.test(text);
}

/** 32 bytes. A fast hash is enough, because a token cannot be guessed. */
export function sha256(text: string): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha256").update(text).digest());
}

/** The token against cross-site request forgery in forms. It comes from the sign-in's token, which another site can have sent but cannot read. */
export function formToken(signInToken: string): string {
  return new Bun.CryptoHasher("sha256").update(`form ${signInToken}`).digest("base64url");
}

/**
 * What a browser keeps that has signed in with the account's password. The hash of the password signs it: no browser sees the hash, and
 * a new password makes the signature void.
 */
export function knownBrowser(id: string, account: { readonly id: string; readonly password: string }): string {
  const signature = new Bun.CryptoHasher("sha256", account.password).update(`browser ${id} of ${account.id}`);
  return `${id}.${signature.digest("base64url")}`;
}

/** Compares in a time that does not depend on where the texts differ. */
export function sameText(one: string, other: string): boolean {
  return timingSafeEqual(sha256(one), sha256(other));
}
