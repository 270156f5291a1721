import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { given } from "../../src/cli/frame/command.ts";
import { sample } from "../../src/cli/sample.ts";
import { LIMITS } from "../../src/limits.ts";
import { sampleFrames } from "../../src/measure/sample/drawing.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";

/** A frame takes 0.1 s to draw, more on a busy machine. */
const DRAWING_MS_MAX = 60_000;

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "tendon-sample-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

async function runSample(...argv: string[]): Promise<number | Problem> {
  const parsed = given(sample, argv);
  return parsed instanceof Problem ? parsed : sample.run(parsed);
}

/** Width and height of the frame header. */
function sizeOf(jpeg: Uint8Array): [number, number] {
  let at = 2;
  while (jpeg[at + 1] !== 0xc0) at += 2 + ((jpeg[at + 2] ?? 0) << 8) + (jpeg[at + 3] ?? 0);
  const word = (offset: number): number => ((jpeg[at + offset] ?? 0) << 8) | (jpeg[at + offset + 1] ?? 0);
  return [word(7), word(5)];
}

test(
  "sample writes three camera-sized JPEGs, a state and a request that the service's rules allow",
  async () => {
    expect(await runSample(join(dir, "new/folder"), "--json")).toBe(EXIT.done);
    const request = await Bun.file(join(dir, "new/folder/request.json")).json();
    expect(request.model).toBe("vendorB/molmoact2:yam");
    const [text, ...images] = request.messages[0].content;
    expect(text.type).toBe("text");
    expect(text.text).not.toBe("");
    expect(images).toHaveLength(3);
    for (const [index, camera] of ["top", "left", "right"].entries()) {
      const jpeg = await Bun.file(join(dir, `new/folder/${camera}.jpg`)).bytes();
      expect(sizeOf(jpeg)).toEqual([640, 360]);
      expect(jpeg.length).toBeGreaterThan(40_000);
      expect(jpeg.length).toBeLessThan(70_000);
      expect(jpeg.length).toBeLessThan(LIMITS.jpegBytesMax);
      expect(images[index].image_url.url).toBe(`data:image/jpeg;base64,${jpeg.toBase64()}`);
    }
    const state = await Bun.file(join(dir, "new/folder/state.json")).json();
    expect(request.robot_state).toEqual(state);
    expect(state.joint_position).toHaveLength(12);
    expect(state.gripper_position).toHaveLength(2);
    for (const value of state.gripper_position) expect(value >= 0 && value <= 1).toBe(true);
  },
  DRAWING_MS_MAX,
);

test(
  "with --model it asks a service for cameras, state and the one size of frames that the model takes",
  async () => {
    const columns = ["pan", "lift"].map((name, index) => ({ name, unit: "deg", from: "state", index }));
    const model = {
      ...{ id: "lab/arm:x", cameras: ["front view", "front/view"], frames: { first: 2, later: 1 }, state: "vector" },
      ...{ frame_size: { width: 70, height: 33 }, state_columns: columns, bundle: "trained" },
      action_columns: [{ name: "lift", unit: "deg", min: 5, max: 9 }],
    };
    const server = Bun.serve({ port: 0, fetch: () => Response.json({ data: [model] }) });
    const keyBefore = process.env.TENDON_API_KEY;
    process.env.TENDON_API_KEY = "tdn_test";
    const ask = (id: string) => runSample(join(dir, "own"), "--model", id, "--base-url", server.url.origin, "--json");
    expect(await ask("lab/arm:x")).toBe(EXIT.done);
    expect(await ask("lab/arm:y")).toMatchObject({ message: expect.stringContaining("it has: lab/arm:x") });
    if (keyBefore === undefined) delete process.env.TENDON_API_KEY;
    else process.env.TENDON_API_KEY = keyBefore;
    await server.stop(true);
    const request = await Bun.file(join(dir, "own/request.json")).json();
    expect([request.model, request.robot_state]).toEqual(["lab/arm:x", { state: [0, 5] }]);
    expect(request.messages[0].content).toHaveLength(5);
    for (const name of ["front%20view-0", "front%20view-1", "front%2Fview-0", "front%2Fview-1"])
      expect(sizeOf(await Bun.file(join(dir, `own/${name}.jpg`)).bytes())).toEqual([70, 33]);
  },
  DRAWING_MS_MAX,
);

test(
  "the same seed draws the same scene, another one another",
  async () => {
    const [first, again, other] = await Promise.all([sampleFrames(3), sampleFrames(3), sampleFrames(4)]);
    if (first instanceof Problem || again instanceof Problem || other instanceof Problem) throw new Error("no drawing");
    expect(again).toEqual(first);
    for (const [view, frame] of first.entries()) expect(other[view]).not.toEqual(frame);
  },
  DRAWING_MS_MAX,
);

test(
  "wrong use exits with 2, an unusable folder with 1",
  async () => {
    expect(await runSample()).toMatchObject({ exit: EXIT.usage });
    expect(await runSample(dir, "--nonsense")).toMatchObject({ exit: EXIT.usage });
    await Bun.write(join(dir, "file"), "");
    expect(await runSample(join(dir, "file"))).toMatchObject({ exit: EXIT.failed });
  },
  DRAWING_MS_MAX,
);
