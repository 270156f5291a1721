/**
 * A publisher's tokenizer for a bundle: SentencePiece's `.model`, or `tokenizer.json` of Hugging Face, and whether it is the one that the
 * checkpoint was trained with.
 *
 * `tokenizer.json` is taken as it is, but that an instruction must not spell a special token. The engine leaves out what the file calls
 * special. So every other added token that is more than white space or one character is called so too. No pair may merge to one.
 */
import { readFile } from "node:fs/promises";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Problem } from "../../std/problem.ts";
import { reason } from "../schema.ts";
import { isLiteral, sentencePieceTokenizer } from "./sentencepiece.ts";

export interface PublishedTokenizer {
  /** `tokenizer.json` of the bundle. */
  readonly json: string;
  /** One more than the largest id. */
  readonly vocabulary: number;
  /** The id of a token's text. */
  readonly ids: ReadonlyMap<string, number>;
  /** Ids that it puts around each text; undefined for SentencePiece, where the caller says which. */
  readonly around: Around | undefined;
}

interface Around {
  readonly before: readonly number[];
  readonly behind: readonly number[];
}

/** What the checkpoint and its configuration say of the tokenizer. */
export interface ExpectedTokenizer {
  /** Rows of the checkpoint's table of tokens. */
  readonly rows: number;
  /** Rows that no token has, because a publisher rounds the table up. */
  readonly spare?: number;
  /** Tokens behind the table, which no text becomes, such as PaliGemma's `<image>`. */
  readonly behindTable?: number;
  /** Ids by their texts, such as `<bos>`: 2. */
  readonly tokens: Readonly<Record<string, number>>;
  /** Ids that it puts before each text, as the prompt of the bundle has them; none where this is absent. It puts none behind. */
  readonly before?: readonly number[];
}

const Template = Type.Object({
  type: Type.Literal("TemplateProcessing"),
  single: Type.Array(
    Type.Object({
      SpecialToken: Type.Optional(Type.Object({ id: Type.String() })),
      Sequence: Type.Optional(Type.Object({})),
    }),
  ),
  special_tokens: Type.Record(Type.String(), Type.Object({ ids: Type.Array(Type.Integer()) })),
});
const Step = Type.Union([Type.Object({ type: Type.Literal("ByteLevel") }), Template]);
const PostProcessor = Type.Union([
  Type.Null(),
  Step,
  Type.Object({ type: Type.Literal("Sequence"), processors: Type.Array(Step) }),
]);

/** What is read of `tokenizer.json`; the rest stays as it is. */
const File = Type.Object({
  added_tokens: Type.Optional(
    Type.Array(Type.Object({ id: Type.Integer(), content: Type.String(), special: Type.Boolean() })),
  ),
  post_processor: Type.Optional(Type.Unknown()),
  model: Type.Object({
    vocab: Type.Union([
      Type.Record(Type.String(), Type.Integer()),
      Type.Array(Type.Tuple([Type.String(), Type.Number()])),
    ]),
    merges: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Array(Type.String())]))),
  }),
});
type File = Static<typeof File>;

/** The tokenizer in `path`, by its name a SentencePiece model or Hugging Face's file. */
export async function readTokenizer(path: string): Promise<PublishedTokenizer | Problem> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (error) {
    return new Problem(
      `${path} cannot be read (${reason(error)}); name the publisher's tokenizer.json or SentencePiece .model`,
    );
  }
  if (!path.endsWith(".model")) return parsed(new TextDecoder().decode(bytes), path);
  const text = sentencePieceTokenizer(bytes, path);
  const tokenizer = text instanceof Problem ? text : parsed(text, path);
  return tokenizer instanceof Problem ? tokenizer : { ...tokenizer, around: undefined };
}

function parsed(text: string, path: string): PublishedTokenizer | Problem {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    return new Problem(`${path} is not JSON (${(error as Error).message}); name the publisher's tokenizer.json`);
  }
  if (!Value.Check(File, file))
    return new Problem(`${path} is no tokenizer.json with model and vocab; name the publisher's`);
  const processor: unknown = file.post_processor ?? null;
  const around = Value.Check(PostProcessor, processor) ? specialAround(processor) : undefined;
  if (around === undefined)
    return new Problem(`${path} has a post_processor that is not known; convert it to a TemplateProcessing`);
  const { vocab } = file.model;
  const entries = Array.isArray(vocab) ? vocab.map(([piece], id) => [piece, id] as const) : Object.entries(vocab);
  const added = (file.added_tokens ?? []).map(({ content, id }) => [content, id] as const);
  const ids = new Map([...entries, ...added]);
  const vocabulary = [...ids.values()].reduce((most, id) => Math.max(most, id + 1), 0);
  return { json: isGuarded(file) ? text : `${JSON.stringify(guarded(file))}\n`, vocabulary, ids, around };
}

/** Added tokens that an instruction must not become. */
function marks({ added_tokens = [] }: File): Set<string> {
  return new Set(added_tokens.map(({ content }) => content).filter((content) => !isLiteral(content)));
}

function merged(pair: string | readonly string[]): string {
  return (typeof pair === "string" ? pair.split(" ") : pair).join("");
}

function isGuarded(file: File): boolean {
  const kept = marks(file);
  const isSpecial = (file.added_tokens ?? []).every(({ content, special }) => special || !kept.has(content));
  return isSpecial && !file.model.merges?.some((pair) => kept.has(merged(pair)));
}

function guarded(file: File): File {
  const kept = marks(file);
  const { merges } = file.model;
  const added_tokens = file.added_tokens?.map((token) =>
    kept.has(token.content) ? { ...token, special: true } : token,
  );
  const model = merges ? { ...file.model, merges: merges.filter((pair) => !kept.has(merged(pair))) } : file.model;
  return { ...file, ...(added_tokens && { added_tokens }), model };
}

/** The ids that a post processor puts around a text; undefined for one that is not known. */
function specialAround(processor: Static<typeof PostProcessor>): Around | undefined {
  const around: { before: number[]; behind: number[] } = { before: [], behind: [] };
  const steps = processor === null ? [] : processor.type === "Sequence" ? processor.processors : [processor];
  for (const step of steps) {
    if (step.type === "ByteLevel") continue;
    const { single, special_tokens: special } = step;
    const at = single.findIndex(({ Sequence }) => Sequence !== undefined);
    const ids = single.map(({ SpecialToken: token }) => special[token?.id ?? ""]?.ids);
    if (at < 0 || ids.some((some, index) => (some === undefined) !== (index === at))) return undefined;
    around.before.unshift(...ids.slice(0, at).flatMap((some) => some ?? []));
    around.behind.push(...ids.slice(at + 1).flatMap((some) => some ?? []));
  }
  return around;
}

/** Why this is not the checkpoint's tokenizer; undefined if it may be. A tokenizer of the same size with the same special tokens is not told apart. */
export function tokenizerFault(
  { vocabulary, ids, around }: PublishedTokenizer,
  { rows, spare = 0, behindTable = 0, tokens, before = [] }: ExpectedTokenizer,
): string | undefined {
  const [least, most] = [rows - spare, rows + behindTable];
  if (vocabulary < least || vocabulary > most) {
    const range = least === most ? `${rows}` : `${least} to ${most}`;
    return `the tokenizer has ${vocabulary} tokens, expected ${range} as the checkpoint's table of ${rows} rows has`;
  }
  for (const [text, id] of Object.entries(tokens)) {
    const found = ids.get(text);
    if (found !== id)
      return `the tokenizer has ${text} ${found === undefined ? "nowhere" : `as token ${found}`}, expected as token ${id}`;
  }
  if (around && !Bun.deepEquals(around, { before, behind: [] }))
    return `the tokenizer puts [${around.before}] before a text and [${around.behind}] behind it, expected [${before}] and []`;
  return undefined;
}
