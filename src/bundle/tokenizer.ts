/**
 * The reference bundles' tokenizer: byte-level BPE in Hugging Face's `tokenizer.json` format, trained at build time on `CORPUS`.
 *
 * Every UTF-8 text can be tokenised, since all 256 bytes are in the vocabulary. Special and state tokens are in the vocabulary but not
 * among the added tokens, so that no instruction can produce one. Words are split at spaces only, without a regular expression.
 * No merged pair contains a space except at its start, since no training word does.
 */
import { assert } from "../std/assert.ts";

/** First ids of the vocabulary; then come state tokens, bytes and merged pairs. */
const SPECIAL = ["<pad>", "<bos>", "<state>"] as const;
export const PAD_ID = 0;
export const STATE_BASE = SPECIAL.length;
export const STATE_BINS = 256;

/** A merged pair: the texts of its two tokens. */
type Pair = readonly [left: string, right: string];

/** A word of the corpus as its current tokens, and how often it occurs. */
interface Word {
  readonly count: number;
  tokens: string[];
}

export interface Tokenizer {
  /** `tokenizer.json`. */
  readonly json: string;
  readonly vocabulary: number;
}

/** Trains at most `merges` pairs; fewer if every word of the corpus is one token by then. Deterministic. */
export function trainTokenizer(corpus: readonly string[], merges: number): Tokenizer {
  const bytes = byteAlphabet();
  const pairs = train(corpus, bytes, merges);
  const tokens = [
    ...SPECIAL,
    ...Array.from({ length: STATE_BINS }, (_, bin) => `<state_${bin}>`),
    ...bytes,
    ...pairs.map((pair) => pair.join("")),
  ];
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  assert(Object.keys(vocab).length === tokens.length, "each token of the vocabulary is there once");
  const byteLevel = { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: false };
  const file = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab,
      merges: pairs,
    },
  };
  return { json: `${JSON.stringify(file)}\n`, vocabulary: tokens.length };
}

/** GPT-2's table, one printable character per byte: printable Latin-1 bytes are themselves, the others begin at U+0100. */
export function byteAlphabet(): string[] {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    if (printable) return String.fromCharCode(byte);
    next += 1;
    return String.fromCharCode(next - 1);
  });
}

/** Merges the most frequent pair, again and again; of equally frequent ones the first in sort order. */
function train(corpus: readonly string[], bytes: readonly string[], merges: number): Pair[] {
  const words = countWords(corpus, bytes);
  const pairs: Pair[] = [];
  while (pairs.length < merges) {
    const best = mostFrequent(words);
    if (best === undefined) break;
    pairs.push(best);
    for (const word of words) word.tokens = join(word.tokens, best);
  }
  return pairs;
}

/** The words of the corpus, each with the space before it, as byte tokens. */
function countWords(corpus: readonly string[], bytes: readonly string[]): Word[] {
  const counts = new Map<string, number>();
  for (const word of corpus.flatMap((line) => line.split(" "))) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, count]) => ({
    count,
    tokens: [...new TextEncoder().encode(` ${word}`)].map((byte) => bytes[byte] ?? ""),
  }));
}

/** Undefined if every word is one token. No token contains a space: the byte alphabet has another character for it. */
function mostFrequent(words: readonly Word[]): Pair | undefined {
  const counts = new Map<string, number>();
  for (const { tokens, count } of words) {
    for (let index = 1; index < tokens.length; index += 1) {
      const pair = `${tokens[index - 1]} ${tokens[index]}`;
      counts.set(pair, (counts.get(pair) ?? 0) + count);
    }
  }
  let best: readonly [pair: string, count: number] = ["", 0];
  for (const [pair, count] of counts) {
    if (count > best[1] || (count === best[1] && pair < best[0])) best = [pair, count];
  }
  const [left = "", right] = best[0].split(" ");
  return right === undefined ? undefined : [left, right];
}

function join(tokens: readonly string[], [left, right]: Pair): string[] {
  const joined: string[] = [];
  for (const token of tokens) {
    if (token === right && joined.at(-1) === left) joined[joined.length - 1] = left + right;
    else joined.push(token);
  }
  return joined;
}

export const CORPUS = [
  "pick up the red cube and put it in the blue bowl",
  "fold the towel in half and then fold it in half again",
  "stack the three wooden blocks from largest to smallest",
  "open the top drawer and place the spoon inside",
  "close the drawer with the left arm",
  "pour the water from the bottle into the glass",
  "wipe the table with the sponge",
  "put the dishes into the drying rack",
  "hand the screwdriver from the right arm to the left arm",
  "unplug the cable and coil it on the table",
  "insert the plug into the socket",
  "sort the screws and the bolts into the two trays",
  "hang the cup on the hook",
  "take the lid off the pot and set it down",
  "put the lid back on the jar and turn it until it is tight",
  "move the green box to the left of the yellow box",
  "push the button on the front of the machine",
  "turn the knob to the right",
  "place the toast on the plate",
  "pack the battery, the charger and the manual into the carton",
  "load the empty test tubes into the rack",
  "pick the ripe strawberries and leave the green ones",
  "fold the white shirt and put it on the pile",
  "put all the toys into the basket",
  "lift the bag by both handles with both grippers",
  "zip the jacket up slowly",
  "clear the plates from the table",
  "bring the mug closer to the camera",
  "release the object and return to the home position",
  "hold the paper with the left gripper and cut along the line with the right",
  "assemble the gear on the shaft and press it down",
  "throw the empty can into the bin",
  "arrange the books on the shelf by height",
  "pick up the black marker and draw a circle on the board",
  "scoop the rice into the small bowl",
  "peel the sticker off the apple",
] as const;
