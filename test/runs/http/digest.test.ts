/** The digest of a body, as a table: RFC 9530 (Content-Digest) and contract section 7 (both wrong shapes are `invalid_request`). */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { digestField, readDigest, readHex } from "../../../src/runs/http/digest.ts";
import { Failure } from "../../../src/std/failure.ts";

/** The digest of `{"hello": "world"}` and a line end (RFC 9530, appendix B.1). */
const BASE64 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=";
const SHA256 = "44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38";
const FIELD = `sha-256=:${BASE64}:`;
const OTHER = `sha-256=:${"A".repeat(43)}=:`;
const SHA512 = `sha-512=:${"A".repeat(86)}==:`;

/** The digest in hexadecimal; why it was refused; null: there is none. */
function read(headers: Record<string, string>): string | null {
  const found = readDigest(new Headers(headers));
  if (found instanceof Failure) return `${found.code}: ${found.message}`;
  return found?.toHex() ?? null;
}

const invalid = (words: string) => expect.stringMatching(new RegExp(`^invalid_request: .*${words}`));
const FORM = invalid("is not of the form sha-256=:BASE64:");
const LENGTH = invalid("is not 32 bytes in base64");
const ALONE = invalid("has no sha-256");

type Case = readonly [why: string, field: string, outcome: unknown];

function each(cases: readonly Case[]): void {
  test.each([...cases])("%s: %s", (_, field, outcome) => {
    expect<unknown>(read({ "content-digest": field })).toEqual(outcome);
  });
}

describe("RFC 9530", () => {
  test("the digest of its appendix is that of its bytes, written as it writes it", () => {
    const sha256 = Uint8Array.from(createHash("sha256").update('{"hello": "world"}\n').digest());
    expect([sha256.toHex(), digestField(sha256)]).toEqual([SHA256, FIELD]);
  });

  test("without a digest nothing is checked", () => expect(read({})).toBeNull());

  test("the legacy Digest and Repr-Digest are not looked at", () => {
    expect(read({ digest: `SHA-256=${BASE64}`, "repr-digest": FIELD })).toBeNull();
  });

  each([
    ["one algorithm", FIELD, SHA256],
    ["several, this one first", `${FIELD}, ${SHA512}`, SHA256],
    ["several, this one last", `${SHA512},${FIELD}`, SHA256],
    ["one that is not registered beside it", `foo=:AAAA:,${FIELD}`, SHA256],
    ["deprecated ones beside it", `md5=:AAAA:, unixsum=:AAAA:, ${FIELD}, crc32c=:AAAA:`, SHA256],
    ["another algorithm alone would not be checked", SHA512, ALONE],
    ["a deprecated one alone", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:", ALONE],
    ["an empty field", "", FORM],
  ]);
});

describe("members", () => {
  each([
    ["of a repeated name the last one counts", `${OTHER}, ${FIELD}`, SHA256],
    ["the one before is not even looked at", `sha-256=:AAAA:, ${FIELD}`, SHA256],
    ["the last one counts also when it is wrong", `${FIELD}, sha-256=:AAAA:`, LENGTH],
    ["blanks around commas", ` ${FIELD} \t,\t ${SHA512} `, SHA256],
    ["a comma at the end", `${FIELD},`, FORM],
    ["a comma and a blank at the end", `${FIELD}, `, FORM],
    ["a comma at the beginning", `,${FIELD}`, FORM],
    ["two commas", `a=:AAAA:,,${FIELD}`, FORM],
    ["no comma between", `${FIELD} a=:AAAA:`, FORM],
    ["a semicolon instead", `${FIELD};${SHA512}`, FORM],
    ["a parameter", `${FIELD};a=1`, FORM],
    ["names are lower-case", `SHA-256=:${BASE64}:`, FORM],
    ["names do not begin with a digit", `256=:AAAA:, ${FIELD}`, FORM],
    ["a blank before the sign", `sha-256 =:${BASE64}:`, FORM],
    ["a blank after the sign", `sha-256= :${BASE64}:`, FORM],
    ["no value", "sha-256", FORM],
    ["no value after the sign", "sha-256=", FORM],
    ["a value that is no digest beside it", `a=1, ${FIELD}`, FORM],
    ["a digest inside a string is none", `a="${FIELD}"`, FORM],
  ]);
});

describe("digests", () => {
  each([
    ["a token", `sha-256=${BASE64.slice(0, 43)}`, FORM],
    ["a string", `sha-256="${BASE64}"`, FORM],
    ["a token that begins with a letter and ends with padding", `sha-256=${BASE64}`, FORM],
    ["hexadecimal in place of base64", `sha-256=:${SHA256}:`, LENGTH],
    ["no colon at the end", `sha-256=:${BASE64}`, FORM],
    ["no colon at the beginning", `sha-256=${BASE64}:`, FORM],
    ["two colons", `sha-256=::${BASE64}::`, FORM],
    ["empty", "sha-256=::", LENGTH],
    ["31 bytes", `sha-256=:${Buffer.alloc(31).toString("base64")}:`, LENGTH],
    ["33 bytes", `sha-256=:${Buffer.alloc(33).toString("base64")}:`, LENGTH],
    ["64 bytes", `sha-256=:${Buffer.alloc(64).toString("base64")}:`, LENGTH],
    ["base64url", `sha-256=:${BASE64.replaceAll("/", "_")}:`, FORM],
    ["a blank inside", `sha-256=:${BASE64.slice(0, 20)} ${BASE64.slice(20)}:`, FORM],
    ["a tab inside", `sha-256=:${BASE64.slice(0, 20)}\t${BASE64.slice(20)}:`, FORM],
    ["padding in the middle", `sha-256=:=${BASE64.slice(1)}:`, LENGTH],
    ["too much padding", `sha-256=:${BASE64}=:`, LENGTH],
    [
      "missing padding: contract section 1 is strict where RFC 9651, 4.2.7 need not",
      `sha-256=:${BASE64.slice(0, 43)}:`,
      LENGTH,
    ],
    ["pad bits that are not zero: likewise", `sha-256=:${BASE64.replace("Dg=", "Dh=")}:`, LENGTH],
    ["an inner list of bytes", `sha-256=(:${BASE64}:)`, FORM],
  ]);
});

describe("X-Content-Sha256", () => {
  const HEX = invalid("X-Content-Sha256 is not 64 hexadecimal digits");
  test.each([
    ["lower-case", SHA256, SHA256],
    ["upper-case", SHA256.toUpperCase(), SHA256],
    ["blanks around it", ` ${SHA256}\t`, SHA256],
    ["63 digits", SHA256.slice(1), HEX],
    ["65 digits", `${SHA256}0`, HEX],
    ["base64", BASE64, HEX],
    ["a prefix", `0x${SHA256.slice(2)}`, HEX],
    ["a letter that is no digit", `g${SHA256.slice(1)}`, HEX],
    ["sent twice", `${SHA256}, ${SHA256}`, HEX],
    ["empty", "", HEX],
  ])("%s: %s", (_, value, outcome) => {
    expect<unknown>(read({ "x-content-sha256": value })).toEqual(outcome);
  });

  test("beside Content-Digest it must be the same, and both must be of their shape", () => {
    const both = (content: string, hex: string) => read({ "content-digest": content, "x-content-sha256": hex });
    expect(both(FIELD, SHA256)).toBe(SHA256);
    expect<unknown>(both(OTHER, SHA256)).toEqual(invalid("are not the same digest"));
    expect<unknown>(both("garbage=", SHA256)).toEqual(FORM);
    expect<unknown>(both(SHA512, SHA256)).toEqual(ALONE);
    expect<unknown>(both(FIELD, "00")).toEqual(HEX);
  });

  test("readHex reads what is 32 bytes and nothing else", () => {
    expect(readHex(SHA256)?.toHex()).toBe(SHA256);
    expect([readHex(""), readHex(`${SHA256}\n`), readHex("zz".repeat(32))]).toEqual([undefined, undefined, undefined]);
  });
});

test("fields as long as a header may be are one look at them", () => {
  for (const piece of ["a,", "a=(", "a;", ' "', "(a ", ';a="', "a=( ", "a  ", ":", "=", 'a="\\\\']) {
    expect(read({ "content-digest": `a=${piece.repeat(16_384 / piece.length)}` })).toStartWith("invalid_request: ");
  }
  expect(read({ "content-digest": `${"a=::,".repeat(3_000)}${FIELD}` })).toBe(SHA256);
});
