import { expect, test } from "bun:test";
import { canonicalDigest } from "../../src/std/canonical.ts";
import { RandomStream } from "../../src/std/random.ts";

const digest = (value: unknown, scope = "chat") => canonicalDigest(scope, value).toHex();

test("equal canonical JSON: object keys sorted, null fields dropped", () => {
  const same = [
    '{"a":1,"b":[{"c":"x","d":null}]}',
    '{"b":[{"c":"x"}],"a":1,"e":null}',
    '{ "a": 1.0, "b": [{"c":"\\u0078"}] }',
  ];
  expect(new Set(same.map((text) => digest(JSON.parse(text)))).size).toBe(1);
});

test("whatever differs has another digest", () => {
  const values = [
    {},
    [],
    "",
    null,
    0,
    false,
    "0",
    "false",
    "null",
    [null],
    [null, null],
    { a: "" },
    { a: {} },
    { a: [] },
    { a: 1, b: 2 },
    { a: 2, b: 1 },
    ["a", "b"],
    ["ab"],
    ["a,b"],
    [["a"], "b"],
    [["a", "b"]],
    { "a\n": 1 },
    "\ud800",
    "\ud801",
    "\ufffd",
    JSON.stringify("\ud800"),
    1e21,
    1e-7,
    0.1,
  ];
  expect(new Set(values.map((value) => digest(value))).size).toBe(values.length);
});

test("the forms of a request are kept apart; -0 equals 0", () => {
  expect(digest({}, "socket")).not.toBe(digest({}, "chat"));
  expect(digest(JSON.parse("-0"))).toBe(digest(0));
});

test("thousands of fields in any order have the digest of the sorted ones", () => {
  const random = new RandomStream("fields");
  for (const count of [255, 256, 257, 513, 3_000]) {
    const fields = Array.from({ length: count }, (_, at) => [`${random.word()}-${at}`, at] as const);
    const keys = fields.map(([key]) => key).sort();
    const byKey = new Map(fields);
    const hasher = new Bun.CryptoHasher("sha256");
    hasher.update(`"4:chat{${count}:`);
    for (const key of keys) hasher.update(`"${key.length}:${key}(${byKey.get(key)})`);
    expect(digest(Object.fromEntries(fields))).toBe(hasher.digest("hex"));
  }
});
