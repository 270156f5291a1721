/**
 * The shortest decimal that reads back to the same float32.
 *
 * At most 9 digits identify a float32, and a double holds 15, so the search runs in doubles. It rounds to `d` digits, checks that
 * this is still the same float32, and prints that double.
 */

/** Powers of ten that a double holds exactly. */
const POW10 = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));
const DIGITS_MAX = 9;

/** The float32 `value` (finite) as JSON number text. */
export function float32Text(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const size = value < 0 ? -value : value;
  if (size < 1e-9 || size >= 1e15) return `${searchText(value)}`;
  // Math.log10 may be one off at a power of ten; that only makes the search try one digit more or less.
  const exponent = Math.floor(Math.log10(size));
  // Below a power of two the interval is half as wide. There a shorter decimal may fit where a longer one does not: try upwards.
  if (isPowerOfTwo(size)) return `${searchText(value)}`;
  let shortest = size;
  for (let digits = DIGITS_MAX; digits > 0; digits -= 1) {
    const rounded = roundTo(size, digits - 1 - exponent);
    if (Math.fround(rounded) !== size) break;
    shortest = rounded;
  }
  return value < 0 ? `-${shortest}` : `${shortest}`;
}

/** `value` rounded to `places` decimal places, as the double nearest to that decimal. */
function roundTo(value: number, places: number): number {
  if (places >= 0) {
    const scale = POW10[places] ?? 1;
    return Math.round(value * scale) / scale;
  }
  const scale = POW10[-places] ?? 1;
  return Math.round(value / scale) * scale;
}

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

function isPowerOfTwo(value: number): boolean {
  float[0] = value;
  return ((bits[0] ?? 0) & 0x7fffff) === 0;
}

/** The slow search, for very small and very large numbers: every number of digits from one up, with both neighbours. */
function searchText(value: number): number {
  for (let digits = 1; digits < DIGITS_MAX; digits += 1) {
    const nearest = Number(value.toPrecision(digits));
    if (Math.fround(nearest) === value) return nearest;
    const step = Number(`1e${Math.floor(Math.log10(Math.abs(value))) - digits + 1}`);
    for (const neighbour of [nearest - step, nearest + step]) {
      const decimal = Number(neighbour.toPrecision(digits));
      if (Math.fround(decimal) === value) return decimal;
    }
  }
  return Number(value.toPrecision(DIGITS_MAX));
}

/** A matrix of `rows` × `columns` float32 values, row-major, as a JSON array of arrays. */
export function rowsText(values: Float32Array, rows: number, columns: number): string {
  let text = "[";
  for (let row = 0; row < rows; row += 1) {
    text += row === 0 ? "[" : ",[";
    for (let column = 0; column < columns; column += 1) {
      if (column > 0) text += ",";
      text += float32Text(values[row * columns + column] ?? 0);
    }
    text += "]";
  }
  return `${text}]`;
}
