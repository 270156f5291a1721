/**
 * Digests of JSON values by content: the order of object keys does not matter, and a field that is `null` counts as absent.
 *
 * Hashed is not JSON text but each value with its type and length before it, so that a large string is hashed without a copy.
 */
import { atOnce, type Steps } from "./slices.ts";

/** SHA-256, 32 bytes. Equal values of different scopes have different digests. For values that are known to be small. */
export function canonicalDigest(scope: string, value: unknown): Uint8Array {
  return atOnce(canonicalSteps(scope, value));
}

/** The same, step by step. */
export function* canonicalSteps(scope: string, value: unknown): Steps<Uint8Array> {
  const hasher = new Bun.CryptoHasher("sha256");
  addText(hasher, scope);
  yield* add(hasher, value);
  return new Uint8Array(hasher.digest());
}

function* add(hasher: Bun.CryptoHasher, value: unknown): Steps<void> {
  if (typeof value === "string") addText(hasher, value);
  else if (Array.isArray(value)) {
    hasher.update(`[${value.length}:`);
    for (const item of value) yield* add(hasher, item);
  } else if (typeof value === "object" && value !== null) {
    const all = Object.entries(value);
    yield;
    const fields = yield* sorted(all.filter(([, field]) => field !== null));
    hasher.update(`{${fields.length}:`);
    for (const [key, field] of fields) {
      addText(hasher, key);
      yield* add(hasher, field);
    }
  } else hasher.update(`(${value})`);
  yield;
}

type Field = readonly [key: string, value: unknown];

/** Fields that are sorted at once. */
const RUN = 256;

/** Sorts by key, as JavaScript compares texts. Short parts are sorted, then merged two by two: sorting thousands at once takes many milliseconds. */
function* sorted(fields: readonly Field[]): Steps<readonly Field[]> {
  let runs: (readonly Field[])[] = [];
  for (let at = 0; at < fields.length; at += RUN) {
    runs.push(fields.slice(at, at + RUN).sort(([one], [other]) => (one < other ? -1 : 1)));
    yield;
  }
  while (runs.length > 1) {
    const merged: (readonly Field[])[] = [];
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* mergedOf(runs[at] ?? [], runs[at + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergedOf(ones: readonly Field[], others: readonly Field[]): Steps<readonly Field[]> {
  const all: Field[] = [];
  let at = 0;
  for (const one of ones) {
    for (let other = others[at]; other && other[0] < one[0]; other = others[at]) {
      all.push(other);
      at += 1;
      if (all.length % RUN === 0) yield;
    }
    all.push(one);
    if (all.length % RUN === 0) yield;
  }
  return all.concat(others.slice(at));
}

function addText(hasher: Bun.CryptoHasher, text: string): void {
  // Encoded as UTF-8, all lone surrogates become the same replacement character.
  const whole = text.isWellFormed();
  hasher.update(whole ? `"${text.length}:` : `'${text.length}:`);
  hasher.update(whole ? text : JSON.stringify(text));
}
