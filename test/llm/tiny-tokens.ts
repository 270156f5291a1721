/** The tokens of the tiny model, and how likely each one is by itself: one for each byte, some words, and the marks of a chat. */

/** What the model says most. Each word, with the space before it, is one token. */
const WORDS =
  "the robot arm moves to a red cup and waits for light server sends new word client reads it every run has start end city weather small model café 世界 🤖";

const CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] as const;
const MARKS = ["<tool_call>", "</tool_call>", "<tools>", "</tools>", "<answer_or_call>"] as const;
/** The kinds of the format's `token_type`. */
const NORMAL = 1;
const CONTROL_TYPE = 3;
const USER_DEFINED = 4;

export const END = "<|im_end|>";
export const PAD = "<|endoftext|>";
export const TOOL_CALL = "<tool_call>";
/** The last token of a prompt that offers tools: after it the model calls one. */
export const ANSWER_OR_CALL = "<answer_or_call>";

/** So unlikely that it never comes. */
const NEVER = -14;
/** Tokens of an answer that ends by itself, on average. */
const MEAN_LENGTH = 60;

/** GPT-2's printable character for each byte: its own where it has one, else the next from 256 on. */
const ALPHABET = (() => {
  const own = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let spare = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(own(byte) ? byte : spare++));
})();

const spelled = (text: string) => [...new TextEncoder().encode(text)].map((byte) => ALPHABET[byte]).join("");

const words = WORDS.split(" ").map((word) => spelled(` ${word}`));

/** The last token of every other prompt. */
export const LINE_FEED = spelled("\n");

export const TOKENS: readonly string[] = [...ALPHABET, ...words, ...CONTROL, ...MARKS];

export const TOKEN_TYPES: readonly number[] = [
  ...Array<number>(ALPHABET.length + words.length).fill(NORMAL),
  ...CONTROL.map(() => CONTROL_TYPE),
  ...MARKS.map(() => USER_DEFINED),
];

/** The tokenizer must know one way to join two tokens. Nothing more: prompts are read byte by byte. */
export const MERGES: readonly string[] = [`${spelled(" ")} ${spelled("a")}`];

/**
 * The logarithm of each token's weight. Words are likely; what closes strings and objects too, so that an answer under a
 * grammar soon ends; what is no text never comes.
 */
export function biases(): Float32Array {
  const bias = Float32Array.from(TOKENS, (token, index) => {
    if (index >= ALPHABET.length) return words.includes(token) ? 2 : NEVER;
    if (index < 32 || index >= 127) return NEVER;
    const character = String.fromCharCode(index);
    if ('"]}'.includes(character)) return 2;
    return /[a-z0-9,.]/.test(character) ? -1 : -3;
  });
  const sum = bias.reduce((total, one) => total + Math.exp(one), 0);
  bias[TOKENS.indexOf(END)] = Math.log(sum / MEAN_LENGTH);
  return bias;
}
