/** Values of tensors that are made when they are written: of a full-size model no more than a piece is ever in memory. */

/** How a weight is kept: float32, or half of its bytes: IEEE half precision or bfloat16, its upper half. */
export type FloatType = "f32" | "f16" | "bf16";

export interface Values {
  readonly bytes: number;
  /**
   * What they are computed from. Tensors of one bundle with the same key have the same values, and lie in its weight file once; values
   * without a key are some graph's own.
   */
  readonly key?: string;
  /** Little-endian, row-major, in order, the same at each call. A piece is valid until the next one is asked for. */
  pieces(): Iterable<Uint8Array>;
}

/** Writes the next values of a tensor over all of `target`. */
export type Source = (target: Float32Array) => void;

/** The most values of a piece; a row of a joined matrix is never cut. */
const PIECE_VALUES = 1 << 18;

/** Values that are there already. */
export function given(bytes: Uint8Array): Values {
  return { bytes: bytes.length, pieces: () => [bytes] };
}

/** All values, in memory. */
export function allOf({ bytes, pieces }: Values): Uint8Array {
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces()) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** `count` values of a source that each call begins anew. */
export function streamed(key: string, count: number, kept: FloatType, begin: () => Source): Values {
  return {
    key: `${kept} ${key}`,
    bytes: count * BYTES[kept],
    *pieces() {
      const next = begin();
      const buffer = new Float32Array(Math.min(count, PIECE_VALUES));
      for (let at = 0; at < count; at += buffer.length) {
        const piece = buffer.subarray(0, Math.min(buffer.length, count - at));
        next(piece);
        yield bytesAs(kept, piece);
      }
    },
  };
}

/** One of several matrices with the same number of rows. */
export interface Columns {
  readonly columns: number;
  readonly begin: () => Source;
}

/** Matrices of `rows` rows side by side. */
export function sideBySide(key: string, rows: number, kept: FloatType, matrices: readonly Columns[]): Values {
  const width = matrices.reduce((sum, { columns }) => sum + columns, 0);
  return {
    key: `${kept} ${key}`,
    bytes: rows * width * BYTES[kept],
    *pieces() {
      const sources = matrices.map(({ columns, begin }) => ({ next: begin(), row: new Float32Array(columns) }));
      const most = Math.max(1, Math.floor(PIECE_VALUES / width));
      const buffer = new Float32Array(Math.min(rows, most) * width);
      for (let first = 0; first < rows; first += most) {
        const count = Math.min(most, rows - first);
        for (let row = 0; row < count; row += 1) {
          let at = row * width;
          for (const { next, row } of sources) {
            next(row);
            buffer.set(row, at);
            at += row.length;
          }
        }
        yield bytesAs(kept, buffer.subarray(0, count * width));
      }
    },
  };
}

const BYTES: Readonly<Record<FloatType, number>> = { f32: 4, f16: 2, bf16: 2 };

function bytesAs(kept: FloatType, values: Float32Array): Uint8Array {
  const { buffer, byteOffset, byteLength } = keptAs(kept, values);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The nearest values that can be kept so, ties to even. */
export function keptAs(kept: FloatType, values: Float32Array): Float32Array | Float16Array | Uint16Array {
  if (kept === "f32") return values;
  return kept === "f16" ? new Float16Array(values) : rounded(values);
}

/** The nearest bfloat16 of each finite float32, ties to even. */
export function rounded(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(values.length);
  for (let at = 0; at < halves.length; at += 1) {
    const word = bits[at] ?? 0;
    // One less than half of the last place; the last place itself makes a tie go to the even neighbour.
    halves[at] = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return halves;
}
