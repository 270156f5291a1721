/** Tokenizers of publishers as a bundle has them. That their ids are those of the publishers' libraries is a test of the engine (native/tests/tokens.rs). */
import { expect, test } from "bun:test";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sentencePieceTokenizer } from "../../../src/bundle/import/sentencepiece.ts";
import { type PublishedTokenizer, readTokenizer, tokenizerFault } from "../../../src/bundle/import/tokenizer.ts";
import { codec } from "../../../src/bundle/protobuf.ts";
import { Problem } from "../../../src/std/problem.ts";

const VECTORS = join(import.meta.dir, "../../vectors/text");

async function read(name: string): Promise<PublishedTokenizer> {
  const tokenizer = await readTokenizer(join(VECTORS, name));
  if (tokenizer instanceof Problem) throw new Error(tokenizer.message);
  return tokenizer;
}

async function problemOf(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), "tendon-tokenizer-")), name);
  await writeFile(path, content);
  const read = await readTokenizer(path);
  return read instanceof Problem ? read.message.replace(path, name) : "no problem";
}

test("the tokenizers of the vectors are what import makes of the publishers' files", async () => {
  for (const file of ["gemma.model", "bpe.model", "unigram.model", "unigram-bytes.model", "smollm.json", "qwen.json"]) {
    const made = await read(file);
    expect(made.json).toBe(await readFile(join(VECTORS, `${file.split(".")[0]}.tokenizer.json`), "utf8"));
  }
});

test("tokenizer.json is taken as it is where no text can spell a special token, else its marks become special and no pair makes one", async () => {
  const guarded = await readFile(join(VECTORS, "smollm.tokenizer.json"), "utf8");
  expect((await read("smollm.tokenizer.json")).json).toBe(guarded);
  const [open, closed] = [JSON.parse(await readFile(join(VECTORS, "smollm.json"), "utf8")), JSON.parse(guarded)];
  const special = ({ added_tokens }: { added_tokens: { content: string; special: boolean }[] }) =>
    added_tokens.find(({ content }) => content === "<tool>")?.special;
  expect([special(open), special(closed)]).toEqual([false, true]);
  const [left, right] = open.model.merges[0];
  const content = left + right;
  open.added_tokens.push({ ...open.added_tokens[0], id: open.model.vocab[content], content, special: true });
  const path = join(await mkdtemp(join(tmpdir(), "tendon-tokenizer-")), "tokenizer.json");
  await writeFile(path, JSON.stringify(open));
  const merged = await readTokenizer(path);
  expect(JSON.parse((merged as PublishedTokenizer).json).model.merges).toEqual(open.model.merges.slice(1));
});

test("special tokens around a text are read of the post processor, and an unknown one is refused", async () => {
  const file = JSON.parse(await readFile(join(VECTORS, "smollm.json"), "utf8"));
  const template = {
    type: "TemplateProcessing",
    single: [
      { SpecialToken: { id: "<|im_start|>" } },
      { Sequence: { id: "A" } },
      { SpecialToken: { id: "<|im_end|>" } },
    ],
    special_tokens: { "<|im_start|>": { ids: [1] }, "<|im_end|>": { ids: [2] } },
  };
  const path = join(await mkdtemp(join(tmpdir(), "tendon-tokenizer-")), "tokenizer.json");
  for (const post_processor of [template, { type: "Sequence", processors: [{ type: "ByteLevel" }, template] }]) {
    await writeFile(path, JSON.stringify({ ...file, post_processor }));
    expect(await readTokenizer(path)).toMatchObject({ around: { before: [1], behind: [2] } });
  }
  const { single, special_tokens } = template;
  const nested = { type: "Sequence", processors: [{ type: "Sequence", processors: [template] }] };
  const unknown = [
    { type: "BertProcessing" },
    ...["ByteLevel", { ...template, single: "A" }, { ...template, single: [null] }, nested],
    ...[
      { ...template, special_tokens: {} },
      { type: "Sequence", processors: {} },
    ],
    ...[
      { ...template, single: [single[0]] },
      { ...template, single: [...single, ...single] },
    ],
    { ...template, special_tokens: { ...special_tokens, "<|im_end|>": null } },
  ];
  for (const post_processor of unknown)
    expect(await problemOf("tokenizer.json", JSON.stringify({ ...file, post_processor }))).toBe(
      "tokenizer.json has a post_processor that is not known; convert it to a TemplateProcessing",
    );
});

test("a tokenizer that is not the checkpoint's is refused by name", async () => {
  const gemma = await read("gemma.model");
  const expected = { rows: 700, tokens: { "<pad>": 0, "</s>": 1, "<s>": 2 } };
  expect(tokenizerFault(gemma, expected)).toBeUndefined();
  expect(tokenizerFault(gemma, { ...expected, rows: 704, spare: 4 })).toBeUndefined();
  expect(tokenizerFault(gemma, { ...expected, rows: 699, behindTable: 1 })).toBeUndefined();
  expect(tokenizerFault(gemma, { ...expected, rows: 257_152 })).toBe(
    "the tokenizer has 700 tokens, expected 257152 as the checkpoint's table of 257152 rows has",
  );
  expect(tokenizerFault(gemma, { ...expected, rows: 720, spare: 4 })).toContain("expected 716 to 720");
  expect(tokenizerFault(gemma, { ...expected, tokens: { "<s>": 1 } })).toBe(
    "the tokenizer has <s> as token 2, expected as token 1",
  );
  const around = { before: [2], behind: [] };
  expect(tokenizerFault({ ...gemma, around }, { ...expected, before: [2] })).toBeUndefined();
  expect(tokenizerFault({ ...gemma, around }, expected)).toBe(
    "the tokenizer puts [2] before a text and [] behind it, expected [] and []",
  );
  expect(tokenizerFault({ ...gemma, around: { before: [2], behind: [1] } }, { ...expected, before: [2] })).toContain(
    "[1] behind it",
  );
  expect(tokenizerFault(gemma, { ...expected, tokens: { "<bos>": 2 } })).toBe(
    "the tokenizer has <bos> nowhere, expected as token 2",
  );
});

test("files that are no tokenizer are told", async () => {
  expect(await readTokenizer(join(VECTORS, "nowhere.model"))).toBeInstanceOf(Problem);
  expect(await problemOf("tokenizer.json", "{")).toContain("tokenizer.json is not JSON");
  expect(await problemOf("tokenizer.json", "{}")).toBe(
    "tokenizer.json is no tokenizer.json with model and vocab; name the publisher's",
  );
  expect(await problemOf("a.model", new Uint8Array([255, 255]))).toContain("a.model is no SentencePiece model");
  expect(await problemOf("a.model", new Uint8Array())).toContain("it has no pieces");
});

test("a SentencePiece model that would be read differently is refused by name", () => {
  const MODEL = codec(
    "sentencepiece",
    `ModelProto: repeated SentencePiece pieces = 1; TrainerSpec trainer_spec = 2; NormalizerSpec normalizer_spec = 3;
    SentencePiece: string piece = 1; float score = 2; int32 type = 3;
    TrainerSpec: int32 model_type = 3; bool treat_whitespace_as_suffix = 24; bool byte_fallback = 35;
    NormalizerSpec: bool escape_whitespaces = 5;`,
    "ModelProto",
  );
  const pieces = [{ piece: "<unk>", type: 2 }, { piece: "a" }];
  const cases: [model: object, expected: string][] = [
    [{ pieces, trainerSpec: { modelType: 3 } }, "its model type is 3, expected unigram (1) or BPE (2)"],
    [{ pieces: [...pieces, { piece: "b", type: 5 }] }, "piece 2 is unused, which is not read"],
    [{ pieces: pieces.slice(1) }, "it has no unknown piece"],
    [{ pieces: [...pieces, { piece: "a".repeat(129) }] }, "piece 2 has 129 characters, expected 128 at most"],
    [{ pieces: [...pieces, { piece: "a" }] }, "piece 1 has the text of another, expected each text once"],
    [{ pieces, trainerSpec: { byteFallback: true } }, "it has 0 byte pieces, expected 256"],
    [{ pieces, trainerSpec: { treatWhitespaceAsSuffix: true } }, "white space is a suffix, expected a prefix"],
    [{ pieces, normalizerSpec: { escapeWhitespaces: false } }, "white space is not escaped"],
    [
      { pieces: [...pieces, { piece: "\n", type: 4 }] },
      "piece 2 is user-defined white space, and the text is normalised",
    ],
  ];
  for (const [model, expected] of cases) {
    const made = sentencePieceTokenizer(MODEL.encode(model), "a.model");
    expect(made instanceof Problem ? made.message : "read").toContain(`a.model: ${expected}`);
  }
  expect(sentencePieceTokenizer(MODEL.encode({ pieces }), "a.model")).toContain('"Unigram"');
});
