/** Pillow's antialiased bilinear resize of 8-bit RGB, bit for bit: fixed-point weights, horizontal pass first, 8 bits between. */
import { present } from "../../src/std/assert.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

const PRECISION_BITS = 22;

/** Row-major RGB of `picture` stretched to `size`. */
export function resizePillow(picture: Size & { readonly data: Uint8Array }, size: Size): Uint8Array {
  // Columns first: afterwards rows of a picture are columns of its transpose.
  const wide = pass(picture.data, picture.width, picture.height, size.width);
  const turned = transpose(wide, size.width, picture.height);
  return transpose(pass(turned, picture.height, size.width, size.height), size.height, size.width);
}

/** Resizes every row of `data` [height, width, 3] to `target` pixels. */
function pass(data: Uint8Array, width: number, height: number, target: number): Uint8Array {
  if (target === width) return data;
  const taps = Array.from({ length: target }, (_, position) => weights(position, width, target));
  const out = new Uint8Array(height * target * 3);
  for (let row = 0; row < height; row += 1) {
    for (const [position, { first, factors }] of taps.entries()) {
      for (let channel = 0; channel < 3; channel += 1) {
        let sum = 2 ** (PRECISION_BITS - 1);
        for (const [tap, factor] of factors.entries()) {
          sum += factor * present(data[(row * width + first + tap) * 3 + channel], "pixel");
        }
        out[(row * target + position) * 3 + channel] = Math.min(
          255,
          Math.max(0, Math.floor(sum / 2 ** PRECISION_BITS)),
        );
      }
    }
  }
  return out;
}

/** The source pixels of one output pixel: a triangle as wide as the scale. */
function weights(position: number, width: number, target: number): { first: number; factors: number[] } {
  const scale = width / target;
  const support = Math.max(scale, 1);
  const centre = (position + 0.5) * scale;
  const first = Math.max(0, Math.trunc(centre - support + 0.5));
  const end = Math.min(width, Math.trunc(centre + support + 0.5));
  const raw = Array.from({ length: end - first }, (_, tap) =>
    Math.max(0, 1 - Math.abs((tap + first - centre + 0.5) / support)),
  );
  const total = raw.reduce((sum, factor) => sum + factor, 0);
  return { first, factors: raw.map((factor) => Math.trunc((factor / total) * 2 ** PRECISION_BITS + 0.5)) };
}

function transpose(data: Uint8Array, width: number, height: number): Uint8Array {
  const out = new Uint8Array(data.length);
  for (let row = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1) {
      for (let channel = 0; channel < 3; channel += 1) {
        out[(column * height + row) * 3 + channel] = present(data[(row * width + column) * 3 + channel], "pixel");
      }
    }
  }
  return out;
}
