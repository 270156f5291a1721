/**
 * Does a service's memory grow under load? Readings: five per tenth of the load, after a full collection; the median of the third
 * tenth is compared with that of the last, so that warm-up is left out and one odd reading does not count.
 */

import { median } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import type { MeasuredServer } from "./measured-server.ts";
import type { Figure } from "./proof.ts";

export const MIB = 2 ** 20;
/** Asked for: growth of the median from the third tenth to the last. */
const GROWTH_MIB_MAX = 8;
const TENTHS = 10;
const READINGS = 5;

interface Load {
  readonly server: MeasuredServer;
  /** Over all readings. */
  readonly count: number;
  /** Drives its part of the load; `part` differs at each call. */
  readonly drive: (count: number, part: string) => Promise<Problem | undefined>;
  /** What the figures are called. */
  readonly name: string;
  readonly tenth: (number: number) => string;
}

export async function growth({ server, count, drive, name, tenth }: Load): Promise<Figure[] | Problem> {
  const tenths: number[] = [];
  for (let at = 0; at < TENTHS; at += 1) {
    const readings: number[] = [];
    for (let reading = 0; reading < READINGS; reading += 1) {
      const lost = await drive(Math.max(1, Math.round(count / TENTHS / READINGS)), `${at}-${reading}`);
      if (lost !== undefined) return lost;
      const bytes = await server.residentBytes();
      if (bytes instanceof Problem) return bytes;
      readings.push(bytes);
    }
    tenths.push(median(readings) / MIB);
  }
  const [third = Number.NaN, last = Number.NaN] = [tenths[2], tenths.at(-1)];
  return [
    ...tenths.map((value, index) => ({ measure: `${name}: ${tenth(index + 1)}`, value, unit: "MiB" })),
    { measure: `${name}: RSS growth, third tenth to last`, value: last - third, unit: "MiB", limit: GROWTH_MIB_MAX },
  ];
}
