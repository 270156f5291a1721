/**
 * SentencePiece's `.model` as the `tokenizer.json` that the Rust crate `tokenizers` reads with the same ids.
 *
 * Format and rules: github.com/google/sentencepiece (Apache-2.0), sentencepiece_model.proto, normalizer.cc, bpe_model.cc,
 * unigram_model.cc. What the crate cannot do the same way is refused by name.
 *
 * One difference is on purpose: the text of a control piece or of a user-defined mark such as `<loc0001>` never becomes that piece,
 * because an instruction could have it. Pieces of white space, and those of one character, do.
 */
import { Problem } from "../../std/problem.ts";
import { codec } from "../protobuf.ts";

const MODEL = codec(
  "sentencepiece",
  `ModelProto: repeated SentencePiece pieces = 1; TrainerSpec trainer_spec = 2; NormalizerSpec normalizer_spec = 3;
  SentencePiece: string piece = 1; float score = 2; int32 type = 3;
  TrainerSpec: int32 model_type = 3; bool treat_whitespace_as_suffix = 24; bool byte_fallback = 35;
  NormalizerSpec: string name = 1; bytes precompiled_charsmap = 2; bool add_dummy_prefix = 3; bool remove_extra_whitespaces = 4;
    bool escape_whitespaces = 5;`,
  "ModelProto",
);

/** Absent fields have proto2's defaults. */
interface Model {
  readonly pieces: readonly { readonly piece?: string; readonly score?: number; readonly type?: number }[];
  readonly trainerSpec?: {
    readonly modelType?: number;
    readonly treatWhitespaceAsSuffix?: boolean;
    readonly byteFallback?: boolean;
  };
  readonly normalizerSpec?: {
    readonly precompiledCharsmap?: Uint8Array;
    readonly addDummyPrefix?: boolean;
    readonly removeExtraWhitespaces?: boolean;
    readonly escapeWhitespaces?: boolean;
  };
}

/** SentencePiece.Type. */
const TYPE = { normal: 1, unknown: 2, userDefined: 4, unused: 5, byte: 6 } as const;
const UNIGRAM = 1;
const BPE = 2;
/** The longest piece: SentencePiece makes none above 16 characters unless it is told to, and the ways to cut one grow with its length. */
const CHARACTERS_MAX = 128;
/** A space in a piece. */
const SPACE = "▁";

interface Piece {
  readonly id: number;
  readonly text: string;
  readonly score: number;
  readonly type: number;
}

/** `tokenizer.json` of the model in `bytes`; `path` is its file, for problems. */
export function sentencePieceTokenizer(bytes: Uint8Array, path: string): string | Problem {
  let model: Model;
  try {
    model = MODEL.decode(bytes) as Model;
  } catch (error) {
    return new Problem(
      `${path} is no SentencePiece model (${(error as Error).message}); name the tokenizer's .model file`,
    );
  }
  const pieces = model.pieces.map(({ piece = "", score = 0, type = TYPE.normal }, id) => ({
    id,
    text: piece,
    score,
    type,
  }));
  const unknown = pieces.find(({ type }) => type === TYPE.unknown);
  const literal = pieces.filter(({ type, text }) => type === TYPE.userDefined && isLiteral(text));
  const refused = refusal(model, pieces, unknown, literal);
  if (refused !== undefined) return new Problem(`${path}: ${refused}; convert the tokenizer to tokenizer.json`);
  const isUnigram = (model.trainerSpec?.modelType ?? UNIGRAM) === UNIGRAM;
  const byteFallback = model.trainerSpec?.byteFallback ?? false;
  const file = {
    version: "1.0",
    truncation: null,
    padding: null,
    // Matched against the normalised text, the longest first, and joined to nothing: as SentencePiece does.
    added_tokens: literal.map(({ id, text }) => ({
      id,
      content: text,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: true,
      special: false,
    })),
    normalizer: { type: "Sequence", normalizers: normalizers(model) },
    pre_tokenizer: isUnigram && byteFallback ? APART : null,
    post_processor: null,
    decoder: null,
    model: isUnigram
      ? { type: "Unigram", unk_id: unknown?.id, vocab: unigramVocabulary(pieces), byte_fallback: byteFallback }
      : {
          type: "BPE",
          dropout: null,
          unk_token: unknown?.text,
          continuing_subword_prefix: null,
          end_of_word_suffix: null,
          fuse_unk: true,
          byte_fallback: byteFallback,
          ignore_merges: false,
          vocab: Object.fromEntries(pieces.map(({ id, text }) => [text, id])),
          merges: merges(pieces),
        },
  };
  return `${JSON.stringify(file)}\n`;
}

/** A mark that spells `<0x0A>` would be the piece of that byte: the crate's unigram model finds every piece. So it is cut behind the bracket. */
const APART = {
  type: "Split",
  pattern: { Regex: "<(?=0x[0-9A-F]{2}>)" },
  behavior: "MergedWithPrevious",
  invert: false,
};

/** White space and single characters are what they say; longer ones are marks. */
export function isLiteral(text: string): boolean {
  return /^[\s▁]+$/u.test(text) || [...text].length === 1;
}

function refusal(
  { trainerSpec, normalizerSpec = {} }: Model,
  pieces: readonly Piece[],
  unknown: Piece | undefined,
  literal: readonly Piece[],
): string | undefined {
  const kind = trainerSpec?.modelType ?? UNIGRAM;
  const unused = pieces.find(({ type }) => type === TYPE.unused);
  const bytes = pieces.filter(({ type }) => type === TYPE.byte).length;
  const long = pieces.find(({ type, text }) => type === TYPE.normal && text.length > CHARACTERS_MAX);
  const last = new Map(pieces.map(({ text, id }) => [text, id]));
  const twice = pieces.find(({ text, id }) => last.get(text) !== id)?.id;
  const changes = normalizerSpec.addDummyPrefix !== false || normalizerSpec.removeExtraWhitespaces !== false;
  const rules: [holds: boolean, text: string][] = [
    [pieces.length > 0, "it has no pieces, expected a SentencePiece model"],
    [kind === UNIGRAM || kind === BPE, `its model type is ${kind}, expected unigram (1) or BPE (2)`],
    [unused === undefined, `piece ${unused?.id} is unused, which is not read`],
    [unknown !== undefined, "it has no unknown piece"],
    [long === undefined, `piece ${long?.id} has ${long?.text.length} characters, expected ${CHARACTERS_MAX} at most`],
    [twice === undefined, `piece ${twice} has the text of another, expected each text once`],
    [!trainerSpec?.byteFallback || bytes === 256, `it has ${bytes} byte pieces, expected 256`],
    [trainerSpec?.treatWhitespaceAsSuffix !== true, "white space is a suffix, expected a prefix"],
    [normalizerSpec.escapeWhitespaces !== false, "white space is not escaped"],
    [
      literal.length === 0 || !(changes || normalizerSpec.precompiledCharsmap?.length),
      `piece ${literal[0]?.id} is user-defined white space, and the text is normalised besides`,
    ],
  ];
  return rules.find(([holds]) => !holds)?.[1];
}

/** normalizer.cc: the table of characters, then extra spaces (at the end their mark too), then the space at the begin, then the mark. */
function normalizers({ normalizerSpec = {} }: Model): object[] {
  const {
    precompiledCharsmap = new Uint8Array(),
    addDummyPrefix = true,
    removeExtraWhitespaces = true,
  } = normalizerSpec;
  const replace = (Regex: string, content: string) => ({ type: "Replace", pattern: { Regex }, content });
  const table = { type: "Precompiled", precompiled_charsmap: Buffer.from(precompiledCharsmap).toString("base64") };
  return [
    ...(precompiledCharsmap.length > 0 ? [table] : []),
    ...(removeExtraWhitespaces ? [replace(`\\A +|[ ${SPACE}]+\\z`, ""), replace(" {2,}", " ")] : []),
    ...(addDummyPrefix ? [{ type: "Prepend", prepend: " " }] : []),
    { type: "Replace", pattern: { String: " " }, content: SPACE },
  ];
}

/** Pieces that no text may become have a space in front: no normalised text has one. */
function unigramVocabulary(pieces: readonly Piece[]): [text: string, score: number][] {
  const found = ({ type, text }: Piece) =>
    type === TYPE.normal || type === TYPE.byte || (type === TYPE.userDefined && isLiteral(text));
  return pieces.map((piece) => [found(piece) ? piece.text : ` ${piece.text}`, piece.score]);
}

/** Every pair of pieces that joined are a piece, the best score first: bpe_model.cc joins the pair whose whole has the best. */
function merges(pieces: readonly Piece[]): [left: string, right: string][] {
  const normal = pieces.filter(({ type }) => type === TYPE.normal);
  const ids = new Map(normal.map(({ text, id }) => [text, id]));
  return normal
    .toSorted((one, other) => other.score - one.score || one.id - other.id)
    .flatMap(({ text }) => {
      const pairs: [left: string, right: string, order: number][] = [];
      for (let at = 1; at < text.length; at += 1) {
        const left = ids.get(text.slice(0, at));
        const right = left === undefined ? undefined : ids.get(text.slice(at));
        if (left !== undefined && right !== undefined)
          pairs.push([text.slice(0, at), text.slice(at), left * pieces.length + right]);
      }
      return pairs.sort((one, other) => one[2] - other[2]).map(([left, right]) => [left, right] as [string, string]);
    });
}
