/** How operations name the parameters of a statement, and how rows become records. */
import { expect, test } from "bun:test";
import { recordOf } from "../../src/store/record.ts";
import { changes, type Steps } from "../../src/store/steps.ts";

function sent(steps: Steps<number>) {
  const next = steps.next();
  return next.done ? undefined : next.value;
}

test("named parameters are numbered by their first place, and undefined is NULL", () => {
  const text = "UPDATE t SET a = $some_one, b = $two WHERE a <> $some_one AND c = $three::text";
  const numbered = "UPDATE t SET a = $1, b = $2 WHERE a <> $1 AND c = $3::text";
  for (const two of [2n, undefined]) {
    const fields = { three: "3", some_one: 1, more: "not in the text", two };
    expect(sent(changes(text, fields))).toEqual({ text: numbered, values: [1, two ?? null, "3"], wants: "count" });
  }
});

test("numbered parameters stay as they are, also with bytes as the first value", () => {
  const bytes = Uint8Array.of(1);
  const text = "DELETE FROM t WHERE a = $1";
  expect(sent(changes(text, bytes))).toEqual({ text, values: [bytes], wants: "count" });
});

test("a name without a value is a bug", () => {
  expect(() => sent(changes("DELETE FROM t WHERE a = $mistyped", { mistiped: 1 }))).toThrow("$mistyped");
});

test("a record has camelCase fields, numbers in the fields that it names, and its own copy of bytes", () => {
  const pool = Buffer.from([0, 1, 2, 3]);
  interface Thing {
    readonly madeAt: number;
    readonly usedAt: number | undefined;
    readonly amount: bigint;
    readonly idSha256: Uint8Array;
  }
  const thing = recordOf<Thing>("madeAt", "usedAt");
  const made = thing({ made_at: 5n, used_at: null, amount: 6n, id_sha256: pool.subarray(1, 3) });
  expect(made).toEqual({ madeAt: 5, usedAt: undefined, amount: 6n, idSha256: Uint8Array.of(1, 2) });
  expect(made.idSha256.buffer.byteLength).toBe(2);
});
