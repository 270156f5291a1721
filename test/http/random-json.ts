/** Random JSON text of every kind, and damage to it, out of a seed. */
import { RandomStream } from "../../src/std/random.ts";

export class Dice {
  private readonly stream: RandomStream;

  constructor(seed: string) {
    this.stream = new RandomStream(seed);
  }

  /** A whole number from 0 to below `count`. */
  below(count: number): number {
    return this.stream.word() % count;
  }

  one<T>(list: readonly [T, ...T[]]): T {
    return list[this.below(list.length)] ?? list[0];
  }
}

const PIECES = [
  "a",
  "é",
  "€",
  "😀",
  "\\n",
  '\\"',
  "\\\\",
  "\\/",
  "\\u0041",
  "\\ud83d\\ude00",
  "\\udead",
  "\u007f",
  "0",
  " ",
] as const;
const NUMBERS = [
  "0",
  "-0",
  "1",
  "-2.5",
  "1e3",
  "1E-7",
  "0.1",
  "123456789012345678901234567890123456789",
  "1e999",
] as const;

/** An object, blanks between its tokens. */
export function randomJson(dice: Dice): string {
  return object(dice, 4);
}

function blank(dice: Dice): string {
  return dice.one(["", "", "", " ", "\n\t ", "\r\n"]);
}

function text(dice: Dice): string {
  const length = dice.one([0, 1, 3, 12, 40, 90, 400]);
  const few: readonly [string, ...string[]] = dice.below(2) === 0 ? ["x"] : [dice.one(PIECES), dice.one(PIECES), "y"];
  return `"${Array.from({ length }, () => dice.one(few)).join("")}"`;
}

function list(dice: Dice, one: () => string): string {
  return Array.from({ length: dice.below(6) }, () => blank(dice) + one() + blank(dice)).join(",");
}

function object(dice: Dice, depth: number): string {
  const key = () => dice.one(['"a"', '"b"', '"7"', '"__proto__"', text(dice)]);
  return `{${list(dice, () => `${key()}${blank(dice)}:${blank(dice)}${value(dice, depth)}`)}${blank(dice)}}`;
}

function value(dice: Dice, depth: number): string {
  const kind = dice.below(depth === 0 ? 4 : 6);
  if (kind === 0) return dice.one(NUMBERS);
  if (kind === 1) return dice.one(["true", "false", "null"]);
  if (kind <= 3) return text(dice);
  return kind === 4 ? `[${list(dice, () => value(dice, depth - 1))}${blank(dice)}]` : object(dice, depth - 1);
}

/** One to three bytes are changed, cut out, doubled or put in. */
export function damagedText(dice: Dice, text: Uint8Array): Uint8Array {
  const bytes = [...text];
  for (let count = 1 + dice.below(3); count > 0; count -= 1) {
    const at = dice.below(bytes.length + 1);
    const byte = dice.one([dice.below(256), ...Buffer.from('{}[]",:\\u0eE.-+ \u007f')]);
    const [from, removed, added] = dice.one<readonly [number, number, readonly number[]]>([
      [at, 1, [byte]],
      [at, 1 + dice.below(4), []],
      [at, 0, [byte]],
      [at, 0, bytes.slice(at, at + 1 + dice.below(20))],
    ]);
    bytes.splice(from, removed, ...added);
  }
  return Uint8Array.from(bytes);
}
