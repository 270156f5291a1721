/** Changes of inputs, deterministic by a seed. */

/** Numbers at which code that counts goes wrong. */
const NUMBERS = ["0", "-1", "1", "65536", "2147483648", "9007199254740993", "18446744073709551616", "1e999", "00"];
const INPUT_BYTES_MAX = 4_096;

/** xorshift32. */
export class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed | 0 || 1;
  }

  /** 0 to below - 1. */
  roll(below: number): number {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x;
    return (x >>> 0) % below;
  }

  pick<T>(list: readonly T[]): T {
    const one = list[this.roll(list.length)];
    if (one === undefined) throw new Error("nothing to pick from");
    return one;
  }
}

/** A changed copy of the input: one to eight changes. */
export function mutate(
  input: Uint8Array,
  corpus: readonly Uint8Array[],
  words: readonly string[],
  dice: Dice,
): Uint8Array {
  let bytes = input;
  for (let changes = 1 + dice.roll(8); changes > 0; changes -= 1) bytes = change(bytes, corpus, words, dice);
  return bytes.subarray(0, INPUT_BYTES_MAX);
}

function change(bytes: Uint8Array, corpus: readonly Uint8Array[], words: readonly string[], dice: Dice): Uint8Array {
  const at = dice.roll(bytes.length + 1);
  const to = Math.min(bytes.length, at + 1 + dice.roll(dice.roll(4) === 0 ? 64 : 4));
  const text = (word: string) => new TextEncoder().encode(word);
  switch (dice.roll(8)) {
    case 0:
      return at < bytes.length ? bytes.with(at, dice.roll(256)) : bytes;
    case 1:
      return joined(bytes.subarray(0, at), bytes.subarray(to));
    case 2:
      return joined(bytes.subarray(0, at), Uint8Array.of(dice.roll(256)), bytes.subarray(at));
    case 3:
      return joined(bytes.subarray(0, to), bytes.subarray(at));
    case 4:
      return joined(bytes.subarray(0, at), text(dice.pick(NUMBERS)), bytes.subarray(to));
    case 5: {
      const other = dice.pick(corpus);
      const from = dice.roll(other.length + 1);
      return joined(bytes.subarray(0, at), other.subarray(from, from + 1 + dice.roll(64)), bytes.subarray(to));
    }
    default:
      return words.length === 0
        ? bytes
        : joined(bytes.subarray(0, at), text(dice.pick(words)), bytes.subarray(dice.roll(2) === 0 ? at : to));
  }
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}
