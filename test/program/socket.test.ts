/** An episode's socket as `bench episode` uses it. */
import { expect, test } from "bun:test";
import { Place } from "./program.ts";

const MODEL = "vendorB/molmoact2:yam";

test("bench episode tells of each loop what was due, what was late and the longest gap", async () => {
  await using place = await Place.make();
  const plan = ["--robots", "2", "--seconds", "2", "--device", "echo"];
  const { code, stdout } = await place.run(["bench", "episode", ...plan, "--json", "loops.json"]);
  expect(code).toBe(0);
  const json = await Bun.file(place.path("loops.json")).text();
  const { measurements } = JSON.parse(json) as { measurements: Record<string, unknown>[] };
  expect(measurements).toMatchObject([{ model: MODEL, device: "echo", robots: 2, seconds: 2, reference: true }]);
  for (const arm of ["service", "control"]) {
    const told = measurements[0]?.[arm] as Record<string, number>;
    // 60 rows of two robots, where a deadline may fall on either side of an end.
    expect(Math.abs((told.rows_due ?? 0) - 120)).toBeLessThanOrEqual(2);
    expect(told.chunks).toBeGreaterThanOrEqual(2);
    expect(told.rows_late).toBe((told.rows_without_chunk ?? 0) + (told.rows_ticked_late ?? 0));
    expect(told.longest_gap_ms).toBeGreaterThan(33);
    for (const value of Object.values(told)) expect(value).toBeFinite();
  }
  expect(stdout).toMatch(/^rows due +\d+ +\d+$/m);
});
