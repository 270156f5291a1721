/**
 * API keys: `tdn_`, 12 characters of public id, `_`, 36 characters of secret, 6 characters of CRC-32 over all of these, in
 * base62. The store has only the public id and the SHA-256 of the whole key.
 */
import { timingSafeEqual } from "node:crypto";
import { LIMITS } from "../limits.ts";
import { base62, randomBase62 } from "../std/ids.ts";
import { sha256 } from "./secret.ts";

const PUBLIC_CHARS = 12;
const SECRET_CHARS = 36;
const CHECK_CHARS = 6;
const FORM = new RegExp(`^tdn_([0-9A-Za-z]{${PUBLIC_CHARS}})_[0-9A-Za-z]{${SECRET_CHARS + CHECK_CHARS}}$`);

/** A new key, which is shown once, and what the store has of it. */
export function newKey(createdAt: number) {
  const publicId = randomBase62(PUBLIC_CHARS);
  const body = `tdn_${publicId}_${randomBase62(SECRET_CHARS)}`;
  const key = body + checksum(body);
  return { key, record: { publicId, sha256: sha256(key), createdAt } };
}

/** The public id inside a key; undefined if form or checksum is wrong, so that mistyped keys need no look-up. */
export function keyPublicId(key: string): string | undefined {
  const publicId = FORM.exec(key)?.[1];
  const body = key.slice(0, -CHECK_CHARS);
  return publicId !== undefined && key === body + checksum(body) ? publicId : undefined;
}

/** The part of a key that is no secret: `tdn_` and its public id. */
export function keyPrefix(publicId: string): string {
  return `tdn_${publicId}`;
}

const PREFIX = new RegExp(`^(?:tdn_)?([0-9A-Za-z]{${PUBLIC_CHARS}})$`);

/** The public id of `tdn_` and a public id, or of a public id alone; undefined for anything else. */
export function publicIdOf(prefix: string): string | undefined {
  return PREFIX.exec(prefix)?.[1];
}

/** The problem of a key's name; undefined for a good one. */
export function keyNameProblem(name: string): string | undefined {
  if ([...name].length <= LIMITS.keyNameCharsMax && !/\p{C}/u.test(name)) return undefined;
  return `a key's name has at most ${LIMITS.keyNameCharsMax} characters, none of them a control character`;
}

/** Compares in a time that does not depend on where the digests differ. */
export function keyMatches(key: string, digest: Uint8Array): boolean {
  return timingSafeEqual(sha256(key), digest);
}

function checksum(body: string): string {
  return base62(Bun.hash.crc32(body), CHECK_CHARS);
}
