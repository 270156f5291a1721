/** Bytes that no disk makes smaller. */

/** What the generator fills at once. */
const PIECE_BYTES = 65_536;

export function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += PIECE_BYTES) crypto.getRandomValues(bytes.subarray(at, at + PIECE_BYTES));
  return bytes;
}
