/**
 * FLOAT8E4M3FN of ONNX, an IEEE-like number in a byte: a sign, four bits of exponent with a bias of 7, three of mantissa. It has no
 * infinity; its largest number is 448, above which everything becomes that.
 */

/** Code of 448; the one above it is NaN. */
const LARGEST = 0x7e;
const SIGN = 0x80;
/** Bits of a float32: of its magnitude, and those that a mantissa of three bits has not. */
const MAGNITUDE = 0x7fff_ffff;
const DROPPED = 20;
/** 2^-6, the smallest number whose mantissa has a leading one, as float32; below it steps are of 2^-9. */
const NORMAL_BITS = 0x3c80_0000;
const STEPS = 2 ** 9;
/** Exponent 0 of float32 is that of 2^-127, here of 2^-7. */
const REBIASED = (127 - 7) << 3;

/** The code of the nearest number to each finite float32, ties to the even code. */
export function e4m3(values: Float32Array): Uint8Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const codes = new Uint8Array(values.length);
  for (let at = 0; at < codes.length; at += 1) {
    const word = bits[at] ?? 0;
    const magnitude = word & MAGNITUDE;
    codes[at] = ((word >>> 24) & SIGN) | (magnitude < NORMAL_BITS ? small(values[at] ?? 0) : normal(magnitude));
  }
  return codes;
}

function normal(magnitude: number): number {
  // One less than half of the last place; the last place itself makes a tie go to the even neighbour.
  const half = (1 << (DROPPED - 1)) - 1 + ((magnitude >>> DROPPED) & 1);
  return Math.min(LARGEST, ((magnitude + half) >>> DROPPED) - REBIASED);
}

/** Steps of 2^-9; eight of them are the smallest normal number, whose code is 8. */
function small(value: number): number {
  const steps = Math.abs(value) * STEPS;
  const below = Math.floor(steps);
  const above = steps - below;
  return above > 0.5 || (above === 0.5 && below % 2 === 1) ? below + 1 : below;
}
