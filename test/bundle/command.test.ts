/** `tendon bundle`: what it prints and how it ends. */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { bundle } from "../../src/cli/bundle.ts";
import { given } from "../../src/cli/frame/command.ts";
import { choose } from "../../src/cli/frame/group.ts";
import { present } from "../../src/std/assert.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { changedFile, rehearse } from "../engine/wrong-provider.ts";
import { emptyDir, MODEL_DIR } from "./built.ts";
import { goldenBundle } from "./golden-bundle.ts";
import { PUBLISHERS, robotFile } from "./import/robots.ts";

let out: string;
let printed = "";
const { write: toFile } = Bun;
const write = spyOn(Bun, "write");

beforeAll(async () => {
  write.mockImplementation(((to: Bun.BunFile, content: string) => {
    if (to !== Bun.stdout) return toFile(to, content);
    printed += content;
    return Promise.resolve(content.length);
  }) as typeof Bun.write);
  out = join(await emptyDir(), "built");
  expect(await run("build", MODEL_DIR, "--out", out)).toBe(EXIT.done);
  expect(printed).toContain("built vendorB/molmoact2:yam (reference bundle, random weights): 8 files");
});

afterAll(() => {
  write.mockRestore();
});

/** What it prints is in `printed` alone. */
async function run(...argv: string[]): Promise<number | Problem> {
  printed = "";
  const chosen = choose(bundle, argv);
  if (chosen instanceof Problem) return chosen;
  const parsed = given(chosen.command, chosen.argv);
  return parsed instanceof Problem ? parsed : await chosen.command.run(parsed);
}

describe("tendon bundle", () => {
  test("import makes a bundle whose rows its own weights give, and show says where it is from", async () => {
    const checkpoint = join(PUBLISHERS, "pi05-openpi/checkpoint");
    const imported = join(await emptyDir(), "imported");
    const argv = (robot: string) => ["import", checkpoint, "--robot", robot, "--id", "lab/pi05:arm", "--out", imported];
    const empty = await run(...argv(await robotFile("")));
    expect(empty).toMatchObject({ exit: EXIT.usage, message: expect.stringContaining("hz = 0  # rows a second") });
    const words = {
      cameras: ["base_0_rgb"],
      missing: ["left_wrist_0_rgb", "right_wrist_0_rgb"],
      isRelative: () => false,
    };
    const robot = await robotFile({ ...words, columns: Array.from({ length: 14 }, (_, at) => `joint_${at}`) });
    expect(await run(...argv(robot), "--compute", "f16", "--json")).toBe(EXIT.done);
    expect(JSON.parse(printed)).toMatchObject({ ok: true, id: "lab/pi05:arm", reference: false, compute: "f16" });
    expect(await run(...argv(robot))).toBe(EXIT.done);
    expect(printed).toStartWith("imported lab/pi05:arm: ");
    expect(await run("show", imported)).toBe(EXIT.done);
    expect(printed).toMatch(/^licence {2}test$/m);
    expect(printed).toMatch(
      /^origin {3}[0-9a-f]{64} {2}model\.safetensors, openpi pi0\.5\n {9}[0-9a-f]{64} {2}config\.json$/m,
    );
    expect(printed).toMatch(/[0-9a-f]{64} {2}assets\/\w+\/norm_stats\.json\n {9}[0-9a-f]{64} {2}\w+\.model$/m);
    expect(await run("verify", imported, "--device", "cpu")).toBe(EXIT.done);
  });

  test("verify says what it verified, in words and as JSON", async () => {
    expect(await run("verify", out)).toBe(EXIT.done);
    expect(printed).toStartWith("verified vendorB/molmoact2:yam (reference bundle, random weights)");
    expect(await run("verify", out, "--json")).toBe(EXIT.done);
    expect(JSON.parse(printed)).toMatchObject({
      ok: true,
      id: "vendorB/molmoact2:yam",
      reference: true,
      weights: "f32",
      files: 8,
      dir: out,
    });
  });

  test("verify --device computes the parity vectors there and prints the difference of each", async () => {
    expect(await run("verify", out, "--device", "cpu")).toBe(EXIT.done);
    expect(printed).toMatch(
      /computed on cpu, the flow step by step, at most 1\.0e-4 may differ\n {2}parity vector 1: \d\.\de-\d\n$/,
    );
    expect(await run("verify", out, "--device", "cpu", "--json")).toBe(EXIT.done);
    const { parity, ...rest } = JSON.parse(printed) as { parity: number[] };
    expect(rest).toMatchObject({
      ...{ ok: true, device: "cpu", refused: [], tolerance: 1e-4, flow_reason: null, host_memory_because: null },
      ...{ own_kernels: false, own_kernels_because: null },
      device_weights: { shared_bytes: 0, copied_bytes: 0, own_bytes: 0, reason: null },
    });
    expect(Object.keys(rest).join()).not.toMatch(/[A-Z]/);
    expect(parity).toHaveLength(1);
    expect(parity[0]).toBeLessThan(1e-4);
  });

  test("build --weights int8 says so, and verify prints the tolerance of that bundle", async () => {
    const int8 = join(await emptyDir(), "int8");
    expect(await run("build", MODEL_DIR, "--weights", "int8", "--out", int8)).toBe(EXIT.done);
    expect(printed).toStartWith(
      "built vendorB/molmoact2:yam (reference bundle, random weights), int8 weights: 8 files",
    );
    expect(await run("verify", int8, "--device", "cpu")).toBe(EXIT.done);
    expect(printed).toMatch(
      /, int8 weights: 8 files.*\ncomputed on cpu, the flow step by step, at most 1\.0e-1 may differ\n/,
    );
    expect(await run("verify", int8, "--json")).toBe(EXIT.done);
    expect(JSON.parse(printed)).toMatchObject({ ok: true, weights: "int8" });
    expect(await run("show", int8)).toBe(EXIT.done);
    expect(printed).toContain("weights  int8\nparity   rows within 0.1 of the expected ones");
  });

  test("build --weights with --compute, and an unknown word, are wrong use: each says what to give", async () => {
    for (const [words, expected] of [
      [["--weights", "int8", "--compute", "f16"], "--weights is 'int8', but those of --compute f16 are f16"],
      [["--weights", "fp16"], "--weights is 'fp16', expected f32, int8, bf16"],
    ] as const)
      expect(await run("build", MODEL_DIR, "--out", out, ...words)).toMatchObject({
        exit: EXIT.usage,
        message: expect.stringContaining(expected),
      });
    expect(printed).toBe("");
  });

  test("verify --device ends with 1 where the rows are wrong, with the difference, the tolerance and what to do", async () => {
    await rehearse({ device: "cuda:0", stale: true });
    const wrong = await run("verify", out, "--device", "cuda:0");
    await rehearse();
    expect(wrong).toMatchObject({ exit: EXIT.failed });
    const { message } = wrong as Problem;
    expect(message).toMatch(
      /cuda:0: its rows are wrong: they differ by \d\.\de\d .* expected at most 1\.0e-4; name another/,
    );
    expect(await run("verify", out, "--device", "cpu", "--within", "0.01", "--gpu", "cuda_graph")).toBe(EXIT.done);
    expect(printed).toContain("computed on cpu, the flow step by step, at most 1.0e-2 may differ");
    for (const words of [
      ["--within", "0.01"],
      ["--device", "cpu", "--within", "none"],
      ["--device", "cpu", "--gpu", "precision=f64"],
    ])
      expect(await run("verify", out, ...words)).toMatchObject({ exit: EXIT.usage });
    expect(await run("verify", out, "--device", "gpu")).toMatchObject({
      exit: EXIT.failed,
      message: expect.stringContaining("unknown device 'gpu', expected auto, cpu, cuda:N"),
    });
  });

  test("verify --replicas has each of them compute the parity vectors", async () => {
    expect(await run("verify", out, "--device", "cpu", "--replicas", "2")).toBe(EXIT.done);
    expect(printed).toContain("computed on cpu by each of 2 replicas, the flow step by step");
    expect(await run("verify", out, "--device", "cpu", "--replicas", "2", "--json")).toBe(EXIT.done);
    expect(JSON.parse(printed)).toMatchObject({ device: "cpu", replicas: 2 });
  });

  test("verify --device says why a device runs the flow step by step", async () => {
    const file = "denoise.onnx";
    // A name that only the graph of a whole flow may have: it cannot be made of this one.
    const named = await changedFile(join(out, file), ({ graph }) => {
      present(graph.node[0], "a node").name = "##";
    });
    await rehearse({ device: "cuda:0", graphs: { [file]: named } });
    const because = `${file} cannot become one graph: the name "##" has ## in it`;
    expect(await run("verify", out, "--device", "cuda:0")).toBe(EXIT.done);
    expect(printed).toContain(
      `computed on cuda:0, the flow step by step, at most 1.0e-4 may differ\n  because ${because}\n`,
    );
    expect(await run("verify", out, "--device", "cuda:0", "--json")).toBe(EXIT.done);
    await rehearse({ device: "cuda:0" });
    expect(JSON.parse(printed)).toMatchObject({ flow: "steps", flow_reason: because });
    expect(await run("verify", out, "--device", "cuda:0", "--json")).toBe(EXIT.done);
    await rehearse();
    expect(JSON.parse(printed)).toMatchObject({ flow: "whole", flow_reason: null });
  });

  test("show prints the description and the files, or the manifest as JSON", async () => {
    expect(await run("show", out)).toBe(EXIT.done);
    expect(printed).toContain("Cameras, in this order: top, left, right.");
    expect(printed).toContain("never move a real arm");
    expect(printed).toContain("prefill.onnx");
    expect(printed).toContain(
      "limits   left_joint_1 [rad]: -2.617 to 3.13, row 0 at most 7.5 from the state, at most 4 from row to row",
    );
    expect(printed).toContain("left_gripper: 0 to 1\n");
    expect(await run("show", out, "--json")).toBe(EXIT.done);
    expect(JSON.parse(printed)).toMatchObject({ id: "vendorB/molmoact2:yam", reference: true, action: { rows: 30 } });
  });

  test("verify compares golden values: a table, and 1 with the first stage that is off; a bundle without them says so", async () => {
    expect(await run("verify", out)).toBe(EXIT.done);
    expect(printed).toEndWith(", no golden values to compare its stages with\n");
    const right = await goldenBundle();
    expect(await run("verify", right)).toBe(EXIT.done);
    expect(printed).toMatch(
      /^verified .*\n2 golden cases; the largest difference .*\n {6}pictures {11}0\.0e\+0 of 1\.0e-4\n/,
    );
    expect(await run("verify", right, "--json")).toBe(EXIT.done);
    expect(JSON.parse(printed)).toMatchObject({ ok: true, golden: { cases: 2, left_out: 0, first_off: null } });
    const wrong = await goldenBundle((_, { image }) => {
      image.resize = "stretch";
    });
    const off = expect.stringContaining("the first stage that is off is pictures by");
    expect(await run("verify", wrong, "--json")).toMatchObject({ exit: EXIT.failed, message: off });
    expect(JSON.parse(printed)).toMatchObject({ ok: false, golden: { first_off: { stage: "pictures" } } });
    expect(await run("verify", wrong)).toMatchObject({ exit: EXIT.failed, message: off });
    expect(printed).toMatch(/\n {2}OFF rows /);
  });

  test("a folder without a bundle ends with 1", async () => {
    for (const action of ["verify", "show"]) expect(await run(action, "/nowhere")).toMatchObject({ exit: EXIT.failed });
    expect(await run("build", "/nowhere", "--out", out)).toMatchObject({ exit: EXIT.failed });
    expect(printed).toBe("");
  });

  test("wrong use ends with 2 and prints nothing", async () => {
    for (const argv of [
      [],
      ["weigh", out],
      ["verify"],
      ["build", MODEL_DIR],
      ["verify", out, "more"],
      ["show", out, "--out", "x"],
      ["show", out, "--device", "cpu"],
      ["verify", out, "--replicas", "2"],
      ["verify", out, "--device", "cpu", "--replicas", "0"],
      ["verify", out, "--weights", "int8"],
      ["build", MODEL_DIR, "--out", out, "--weights", "f16"],
      ["verify", out, "--fast"],
    ]) {
      expect(await run(...argv)).toMatchObject({
        exit: EXIT.usage,
        message: expect.stringMatching(/tendon bundle (build |verify |show )?--help/),
      });
    }
    expect(printed).toBe("");
  });
});
