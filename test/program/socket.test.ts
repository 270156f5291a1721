/** An episode's socket as a newcomer uses it: `act --socket`, and `bench episode`. */
import { expect, test } from "bun:test";
import { isClear, Place } from "./program.ts";

const MODEL = "vendorB/molmoact2:yam";

test("act --socket gives the chunk that act gives over HTTP, and with --session goes on with it", async () => {
  await using place = await Place.make();
  expect(await place.run(["sample", "demo"])).toMatchObject({ code: 0 });
  const server = await place.serve();
  const images = ["top", "left", "right"].flatMap((camera) => ["--image", `${camera}=demo/${camera}.jpg`]);
  const act = async (...more: string[]) =>
    await place.run(
      ["act", "--model", MODEL, "--instruction", "go", ...images, "--state", "demo/state.json", ...more],
      { TENDON_BASE_URL: server.ready.url },
    );
  const chunk = async (...more: string[]) => {
    const { code, stdout, stderr } = await act("--json", ...more);
    expect([code, stderr]).toEqual([0, expect.stringContaining("random numbers")]);
    return JSON.parse(stdout) as { actions: number[][]; step: number; session_id: string };
  };
  const [http, socket] = [await chunk(), await chunk("--socket", "--plot", "chunk.svg")];
  expect(Object.keys(socket)).toEqual(Object.keys(http));
  expect(socket.actions).toEqual(http.actions);
  expect(await Bun.file(place.path("chunk.svg")).text()).toContain("random weights");
  // The same words, but for session and times.
  const words = (text: string) => text.replace(/anon-\w+/g, "ID").replace(/timing.*/g, "");
  expect(words((await act("--socket")).stdout)).toBe(words((await act()).stdout));

  // Over both in turn: there is one session.
  const steps = [await chunk("--session", "e", "--socket"), await chunk("--session", "e")];
  steps.push(await chunk("--session", "e", "--socket"));
  expect(steps.map(({ step, session_id }) => [session_id, step])).toEqual([
    ["e", 0],
    ["e", 1],
    ["e", 2],
  ]);

  const refused = await act("--session", " e", "--socket");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("invalid_session_id: ")]);
  expect(isClear(refused.stderr)).toBe(true);
  expect(await server.stop()).toBe(0);
});

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
