/** The SHA-256 that a client sends with a body: `Content-Digest` (RFC 9530) or `X-Content-Sha256`, in hexadecimal. */
import { Failure } from "../../std/failure.ts";
import { invalid } from "../errors.ts";

const BYTES = 32;
const HEX = /^[0-9a-fA-F]{64}$/;
/** An algorithm and its digest. RFC 9530 knows no other values. */
const MEMBER = /^([a-z][a-z0-9-]*)=:([A-Za-z0-9+/=]*):$/;

export function readDigest(headers: Headers): Uint8Array | undefined | Failure {
  const content = headers.get("content-digest");
  const hex = headers.get("x-content-sha256");
  const named = content === null ? undefined : contentDigest(content);
  if (named instanceof Failure) return named;
  const plain = hex === null ? undefined : readHex(hex.trim());
  if (hex !== null && plain === undefined) return invalid("X-Content-Sha256 is not 64 hexadecimal digits");
  if (named && plain && Buffer.compare(named, plain) !== 0) {
    return invalid("Content-Digest and X-Content-Sha256 are not the same digest; send one of them");
  }
  return named ?? plain;
}

/** A SHA-256 in hexadecimal; undefined if the value is none. */
export function readHex(value: unknown): Uint8Array | undefined {
  return typeof value === "string" && HEX.test(value) ? Uint8Array.fromHex(value) : undefined;
}

export function digestField(sha256: Uint8Array): string {
  return `sha-256=:${sha256.toBase64()}:`;
}

/** Other algorithms may stand beside SHA-256, but not instead of it: their sender would believe that they are checked. */
function contentDigest(field: string): Uint8Array | Failure {
  const members = field.split(",").map((member) => MEMBER.exec(member.trim()));
  if (members.includes(null)) return invalid("Content-Digest is not of the form sha-256=:BASE64:");
  // The last member of a repeated name counts (RFC 9651).
  const [, , text] = members.findLast((member) => member?.[1] === "sha-256") ?? [];
  if (text === undefined) {
    return invalid("Content-Digest has no sha-256, the one algorithm that is checked here; add it");
  }
  const bytes = strictBase64(text);
  return bytes?.length === BYTES ? bytes : invalid("the sha-256 of Content-Digest is not 32 bytes in base64");
}

/** Contract section 1 is stricter than RFC 9651, which allows missing padding. */
function strictBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.fromBase64(text, { lastChunkHandling: "strict" });
  } catch {
    return undefined;
  }
}
