/** Places of the pixels of a feature map, as sines and cosines of their row and column. */

const TEMPERATURE = 10_000;
const EPSILON = 1e-6;
const { fround } = Math;

/**
 * f32 [height · width, columns], pixels row-major. The first half of the columns is of the row, the second of the column, a sine and a
 * cosine in turn. A place i of n, from 1, is the angle i / (n + 1e-6) · 2π, divided by 10000^(2j / (columns / 2)) for pair j
 * (`ACTSinusoidalPositionEmbedding2d` of LeRobot). Each operation is rounded to float32, as PyTorch does it.
 */
export function sinePositions(width: number, height: number, columns: number): Float32Array {
  const half = columns / 2;
  const values = new Float32Array(height * width * columns);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = (y * width + x) * columns;
      values.set(waves(angle(y + 1, height), half), at);
      values.set(waves(angle(x + 1, width), half), at + half);
    }
  }
  return values;
}

function angle(place: number, count: number): number {
  return fround(fround(place / fround(count + fround(EPSILON))) * fround(2 * Math.PI));
}

function waves(angle: number, columns: number): number[] {
  return Array.from({ length: columns }, (_, at) => {
    const exponent = fround((2 * Math.floor(at / 2)) / columns);
    const slower = fround(angle / fround(TEMPERATURE ** exponent));
    return at % 2 === 0 ? Math.sin(slower) : Math.cos(slower);
  });
}
