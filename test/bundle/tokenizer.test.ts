/** The tokenizer of the reference bundles. That the Rust crate reads it the same way is the native engine's test. */
import { describe, expect, test } from "bun:test";
import { CORPUS, trainTokenizer } from "../../src/bundle/tokenizer.ts";
import { present } from "../../src/std/assert.ts";
import { Bpe } from "./bpe.ts";

const trained = trainTokenizer(CORPUS, 320);
const bpe = new Bpe(trained.json);

describe("tokenizer", () => {
  test("every text comes back as it was, behind one space", () => {
    const texts = [
      "pick up the red cube",
      "schließe die Schublade, s'il vous plaît",
      "赤いブロックを青い箱に入れて",
      "أغلق الدرج",
      "🤖 fold 👕 twice 👩🏽‍🔧",
      "tabs\tand\nlines",
      "\u0000\u007f\u0080\uffff",
      "a".repeat(300),
      "<pad><bos><state_3>",
    ];
    for (const text of texts) expect(bpe.decode(bpe.encode(text))).toBe(` ${text}`);
  });

  test("the empty text has no tokens", () => expect(bpe.encode("")).toEqual([]));

  test("instructions of its corpus take few tokens, and no joined pair crosses a space", () => {
    const words = "pick up the red cube and put it in the blue bowl";
    expect(bpe.encode(words).length).toBeLessThan(16);
    const together = bpe.encode(words);
    expect(together).toEqual(words.split(" ").flatMap((word) => bpe.encode(word)));
  });

  test("no text can spell a special or a state token", () => {
    const reserved = new Set(
      ["<pad>", "<bos>", "<state>", "<state_0>", "<state_255>"].map((token) => present(bpe.id(token), token)),
    );
    const ids = bpe.encode("<pad> <bos> <state> <state_0><state_255>");
    expect(ids.some((id) => reserved.has(id) || id < 3 + 256)).toBe(false);
  });

  test("specials come first, then 256 state tokens in order", () => {
    expect(["<pad>", "<bos>", "<state>"].map((token) => bpe.id(token))).toEqual([0, 1, 2]);
    for (const bin of [0, 1, 128, 255]) expect(bpe.id(`<state_${bin}>`)).toBe(3 + bin);
    expect(bpe.size).toBe(trained.vocabulary);
    expect(bpe.size).toBe(3 + 256 + 256 + 320);
  });

  test("training twice gives the same bytes", () => expect(trainTokenizer(CORPUS, 320)).toEqual(trained));
});
