/** Secrets that a person or a device holds: long random texts, of which the store has the SHA-256 alone. */
import { timingSafeEqual } from "node:crypto";
import { randomBase62 } from "../std/base62.ts";

/** 43 characters of base62 are 256 bits. */
const TOKEN_CHARS = 43;
const TOKEN = new RegExp(`^[0-9A-Za-z]{${TOKEN_CHARS}}$`);

export function makeToken(): string {
  return randomBase62(TOKEN_CHARS);
}

/** Whether it has the form of a token, so that nothing else is looked up. */
export function isToken(text: string | undefined): text is string {
  return text !== undefined && TOKEN.test(text);
}

/** 32 bytes. A fast hash is right for a secret that nobody can guess. */
export function sha256(text: string): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha256").update(text).digest());
}

/**
 * What the forms of a sign-in carry, made of its token: another site, which can make a browser send the cookie but cannot read
 * it, does not know this.
 */
export function formToken(signInToken: string): string {
  return new Bun.CryptoHasher("sha256").update(`form ${signInToken}`).digest("base64url");
}

/** Compares in a time that does not depend on where the texts differ. */
export function sameText(one: string, other: string): boolean {
  return timingSafeEqual(sha256(one), sha256(other));
}
