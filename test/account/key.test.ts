import { expect, test } from "bun:test";
import { keyMatches, keyPublicId, newKey } from "../../src/account/key.ts";
import { sha256 } from "../../src/account/secret.ts";
import { base62 } from "../../src/std/ids.ts";

test("a key is tdn_ + 12 + _ + 36 + 6 characters of base62", () => {
  const key = newKey(0).key;
  expect(key).toMatch(/^tdn_[0-9A-Za-z]{12}_[0-9A-Za-z]{42}$/);
  expect(keyPublicId(key)).toBe(key.slice(4, 16));
  expect(newKey(0).key).not.toBe(key);
});

test("a changed character anywhere is caught by form or checksum", () => {
  const key = newKey(0).key;
  for (let i = 0; i < key.length; i += 1) {
    const other = key[i] === "x" ? "y" : "x";
    expect([i, keyPublicId(key.slice(0, i) + other + key.slice(i + 1))]).toEqual([i, undefined]);
  }
  for (const wrong of ["", "tdn_", key.slice(1), `${key}a`, ` ${key}`, `${key}\n`]) {
    expect([wrong, keyPublicId(wrong)]).toEqual([wrong, undefined]);
  }
});

test("the checksum is the CRC-32 of everything before it", () => {
  const key = newKey(0).key;
  expect(key.slice(-6)).toBe(base62(Bun.hash.crc32(key.slice(0, -6)), 6));
});

test("a digest matches its key only", () => {
  const key = newKey(0).key;
  expect(sha256(key).length).toBe(32);
  expect([keyMatches(key, sha256(key)), keyMatches(newKey(0).key, sha256(key))]).toEqual([true, false]);
});
