/** What import refuses: by name, and with nothing written. */
import { describe, expect, test } from "bun:test";
import { cp, readdir, rename, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ImportOptions, importBundle } from "../../../src/bundle/import/import.ts";
import { readProcessors } from "../../../src/bundle/import/processors.ts";
import type { Golden } from "../../../src/bundle/manifest.ts";
import { Problem } from "../../../src/std/problem.ts";
import { ok } from "../../engine/opened.ts";
import { emptyDir } from "../built.ts";
import { PUBLISHERS, robotFile, robotToml } from "./robots.ts";
import { json, values, tensors as weights } from "./spoiled-checkpoint.ts";

const WORDS = {
  cameras: ["top", "wrist"],
  columns: ["waist", "shoulder", "elbow", "wrist_1", "wrist_2", "left_gripper", "right_gripper"],
};
const VIEWS = ["base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"];
const LEROBOT = join(PUBLISHERS, "pi05-lerobot/checkpoint");
const TOP = "observation.images.top";
const DOWN = "model.paligemma_with_expert.paligemma.model.language_model.layers.0.mlp.down_proj.weight";
const BIAS = "model.time_mlp_in.bias";
const NORM = "model.paligemma_with_expert.gemma_expert.model.norm.dense.bias";

async function changed(change: (dir: string) => Promise<unknown>, from = LEROBOT): Promise<string> {
  const dir = join(await emptyDir(), "checkpoint");
  await cp(from, dir, { recursive: true });
  await change(dir);
  return dir;
}

/** The message of an import of a changed copy of the checkpoint. */
async function refusal(
  change: (dir: string) => Promise<unknown>,
  more: Partial<ImportOptions> = {},
  from?: string,
): Promise<string> {
  const dir = await changed(change, from);
  const out = join(await emptyDir(), "out");
  const made = await importBundle(dir, out, {
    ...{ id: "lab/pi05:arm", robot: await robotFile(WORDS), precision: "f32" },
    computeRows: async (_, { observations }) => observations,
    draw: async () => [new Uint8Array()],
    ...more,
  });
  expect(await readdir(join(out, ".."))).toEqual(made instanceof Problem ? [] : ["out"]);
  return made instanceof Problem ? made.message : "no problem";
}

describe("weights", () => {
  test("missing and extra ones are all named", async () => {
    const spoil = weights((tensors) => {
      delete tensors[DOWN];
      delete tensors[BIAS];
      tensors["model.more"] = { shape: [1], bytes: new Uint8Array(4) };
    });
    const message = await refusal(spoil);
    for (const name of [DOWN, BIAS]) expect(message).toContain(`${name.replace("model.", "")} is missing`);
    expect(message).toContain("model.more is none of LeRobot pi0.5's");
  });

  test("transposed and infinite ones are named, with the shape that was expected", async () => {
    const turn = weights((tensors) => {
      const down = tensors[DOWN];
      if (down) tensors[DOWN] = { ...down, shape: down.shape.toReversed() };
    });
    expect(await refusal(turn)).toMatch(/layers\.0\.mlp\.down_proj\.weight is \[64,32\], expected \[32,64\]/);
    const spoil = weights((tensors) => tensors[NORM]?.bytes.set([0, 0, 0x80, 0x7f], 4));
    expect(await refusal(spoil)).toContain(`${NORM} has a value that is not finite`);
  });

  test("a finite one that is infinite in half precision is named", async () => {
    const spoil = values(/language_model\.layers\.0\.mlp\.down_proj/, (old) => old.fill(1e6, 0, 1));
    expect(await refusal(spoil, { compute: "f16" })).toContain(`${DOWN} has a value that is not finite as f16`);
    expect(await refusal(spoil, { compute: "bf16" })).toBe("no problem");
  });

  test("a file that is cut short while it is read is named", async () => {
    let path = "";
    const change = async (dir: string) => {
      path = join(dir, "model.safetensors");
    };
    const draw = async () => {
      await truncate(path, 100_000);
      return [new Uint8Array()];
    };
    expect(await refusal(change, { draw })).toContain("model.safetensors became shorter while it was read); fetch");
  });

  test("a tokenizer may have <image> behind the table, as Hugging Face's file of PaliGemma has, and no more", async () => {
    const behind = (names: readonly string[]) =>
      json("tokenizer.json", ({ added_tokens: added, model }) => {
        const first = Object.keys(model.vocab).length;
        for (const [at, content] of names.entries()) added.push({ ...added[0], id: first + at, content });
      });
    expect(await refusal(behind(["<image>"]))).toBe("no problem");
    expect(await refusal(behind(["<image>", "<more>"]))).toContain("has 386 tokens, expected 384 to 385");
  });

  test("old names, other prefixes and the head as the only table are read; two names of one tensor are not", async () => {
    const rename = (from: RegExp, to: string) =>
      weights((tensors) => {
        for (const [name, tensor] of Object.entries(tensors)) {
          delete tensors[name];
          tensors[name.replace(from, to)] = tensor;
        }
      });
    expect(await refusal(rename(/^model\./, ""))).toBe("no problem");
    expect(await refusal(rename(/paligemma\.model\.language_model\./, "paligemma.language_model.model."))).toBe(
      "no problem",
    );
    expect(await refusal(rename(/vision_tower\.vision_model\./, "vision_tower."))).toBe("no problem");
    const tied = weights((tensors) => {
      for (const name of Object.keys(tensors))
        if (name.endsWith("language_model.embed_tokens.weight")) delete tensors[name];
    });
    expect(await refusal(tied)).toBe("no problem");
    const twice = weights((tensors) => {
      const bias = tensors[BIAS];
      if (bias) tensors["time_mlp_in.bias"] = bias;
    });
    expect(await refusal(twice)).toContain("two names of one tensor");
  });
});

describe("processors and configuration", () => {
  const before = "policy_preprocessor.json";
  const cases: [what: string, change: (dir: string) => Promise<void>, expected: string][] = [
    [
      "an unknown step",
      json(before, ({ steps }) => steps.push({ registry_name: "blur", config: {} })),
      "has the step blur",
    ],
    ["a step that is twice there", json(before, ({ steps }) => steps.push(steps[3])), "has normalizer_processor twice"],
    [
      "another order",
      json(before, ({ steps }) => steps.splice(2, 2, steps[3], steps[2])),
      "has relative_actions_processor after normalizer_processor",
    ],
    [
      "relative actions on one side",
      json("policy_postprocessor.json", ({ steps }) => (steps[1].config.enabled = false)),
      "relative_actions_processor is on and absolute_actions_processor is not",
    ],
    ["padding on the left", json(before, ({ steps }) => (steps[5].config.padding_side = "left")), "/padding_side"],
    [
      "normalised pictures",
      json(before, ({ steps }) => (steps[3].config.norm_map.STATE = "ZSCORE")),
      "/norm_map/STATE",
    ],
    ["another family", json("config.json", (config) => (config.type = "dp3")), "/type is dp3, expected pi05"],
    [
      "another size of pictures",
      json("config.json", (config) => (config.image_resolution = [224, 224])),
      "/image_resolution is 224,224",
    ],
    ...(["pre", "post"] as const).map((side): (typeof cases)[number] => {
      const key = side === "pre" ? "observation.state" : "action";
      return [
        `no statistics of ${key}`,
        weights(
          (all) => {
            for (const name of Object.keys(all)) if (name.startsWith(`${key}.`)) delete all[name];
          },
          new Bun.Glob(`policy_${side}*.safetensors`),
        ),
        `policy_${side}processor.json says QUANTILES of ${key} and has no statistics of it`,
      ];
    }),
    ["other periods", json("config.json", (config) => (config.max_period = 8)), "/max_period"],
  ];
  test.each(cases)("%s", async (_, change, expected) => {
    expect(await refusal(change)).toContain(expected);
  });

  test("an action that the features leave out is normalised all the same, as LeRobot does", async () => {
    const dir = await changed(json("policy_postprocessor.json", ({ steps }) => (steps[0].config.features = {})));
    const [{ action }, plain] = [ok(await readProcessors(dir)), ok(await readProcessors(LEROBOT))];
    expect(action.column.norm).toBe("quantile");
    expect(action).toEqual(plain.action);
  });

  test("unknown fields of the configuration are none of import's", async () => {
    expect(await refusal(json("config.json", (config) => (config.from_the_future = { a: 1 })))).toBe("no problem");
  });
});

describe("golden values", () => {
  const cases = (change: (golden: Golden) => unknown) => json("golden.json", change);
  const wrong: [what: string, change: (dir: string) => Promise<unknown>, expected: string][] = [
    [
      "a frame whose name no manifest lists",
      async (dir) => {
        await rename(join(dir, "0-top.jpg"), join(dir, "top 1.jpg"));
        await cases(({ cases: [first] }) => Object.assign(first?.frames ?? {}, { [TOP]: "top 1.jpg" }))(dir);
      },
      "golden.json: a frame is called top 1.jpg, expected",
    ],
    [
      "a frame with the name of another file of the folder",
      async (dir) => {
        await rename(join(dir, "0-top.jpg"), join(dir, "chunk.json"));
        await cases(({ cases: [first] }) => Object.assign(first?.frames ?? {}, { [TOP]: "chunk.json" }))(dir);
      },
      "golden.json: a frame is called chunk.json, expected",
    ],
    ["a state that is too short", cases(({ cases: [, one] }) => one?.state.pop()), "/cases/1/state: found 6 values"],
    [
      "values that are no tensors",
      (dir) => writeFile(join(dir, "golden.safetensors"), "x"),
      "golden.safetensors is no whole safetensors file",
    ],
  ];
  test.each(wrong)("%s is refused before the checkpoint is read", async (_, change, expected) => {
    const golden = join(await emptyDir(), "golden");
    await cp(join(PUBLISHERS, "pi05-lerobot/golden"), golden, { recursive: true });
    await change(golden);
    const progress = () => {
      throw new Error("weights were read");
    };
    expect(await refusal(async () => {}, { golden, progress })).toContain(expected);
  });
});

describe("the robot file", () => {
  const message = async (toml: string) => refusal(async () => {}, { robot: await robotFile(toml) });

  test("what it leaves out is printed as lines to fill in, with what the checkpoint knows", async () => {
    const text = await message(
      'licence = "x"\nhz = 10\nstate_kind = "joint"\ncameras = [{ name = "front", key = "top" }]',
    );
    expect(text).toContain(
      [
        'out_of_range = "clamp"  # or "fail": a chunk with a value outside its range',
        "cameras = [  # or in missing_cameras: no camera",
        '  { name = "", key = "wrist" },',
      ].join("\n"),
    );
    expect(text).toContain('  { name = "shoulder", unit = "", from = "", index = 0 },');
    expect(text).toContain('  { name = "Right_Gripper_width", unit = "", min = 0.0, max = 0.0 },');
    expect(text).not.toContain("hz =");
  });

  test("what contradicts the checkpoint or itself is named", async () => {
    const good = robotToml(WORDS);
    const cases: [from: string | RegExp, to: string, expected: string][] = [
      [
        "observation.images.wrist",
        "observation.images.hand",
        "it has no picture hand, only top, wrist, empty_camera_0",
      ],
      ["observation.images.wrist", "observation.images.top", "the picture top is there twice"],
      [/max_step = 1e-6 }/, 'relative_to = "none" }', "waist is relative to none, but the checkpoint says waist"],
      [/max_step = 1e-6 }/, 'relative_to = "nose" }', "waist is relative to nose, which is no state column"],
      [
        'name = "shoulder", unit = "rad" }',
        'name = "shoulder", unit = "rad", units = "rad" }',
        "/state/1/units: found",
      ],
      ["max = 100.0", "max = -200.0", "/action/columns/0/max: found -200"],
      ['name = "elbow", unit = "rad" }', 'name = "waist", unit = "rad" }', "/state/columns/2/name: found waist"],
      ["[", "[[", "cannot be read as TOML"],
      ['"waist", unit = "rad" }', '"waist", unit = "rad", from = "joint_position" }', "waist has from, which a vector"],
    ];
    for (const [from, to, expected] of cases) expect(await message(good.replace(from, to))).toContain(expected);
  });

  test("a column that names an array without a place, or a place that the array has not, is refused", async () => {
    const arm = (last: string) => {
      const joint = robotToml(WORDS).replace('"vector"', '"joint"');
      return WORDS.columns.reduce((toml, name, at) => {
        const column = `"${name}", unit = "rad"`;
        return toml.replace(`${column} }`, `${column}, from = "${at < 6 ? `joint_position", index = ${at}` : last} }`);
      }, joint);
    };
    expect(await message(arm('gripper_position", index = 1'))).toBe("no problem");
    expect(await message(arm('gripper_position"'))).toContain("from: joint_position, gripper_position");
    expect(await message(arm('gripper_position", index = 2'))).toContain(
      "/state/columns/6/index: found 2, expected less than the 2 values of gripper_position in joint state",
    );
  });

  test("a key that the policy has and the processors rename to another picture may be either", async () => {
    const [top, wrist] = ["observation.images.top", "observation.images.wrist"];
    const renaming = (map: object) =>
      json("policy_preprocessor.json", ({ steps }) => (steps[0].config.rename_map = map));
    const swapped = await refusal(renaming({ [top]: wrist, [wrist]: top }));
    expect(swapped).toContain("top is a picture of the policy, and rename_map makes it wrist");
    const robot = await robotFile(robotToml(WORDS).replace(top, "front"));
    expect(await refusal(renaming({ "observation.images.front": top }), { robot })).toBe("no problem");
  });

  test("columns that openpi's file leaves out are padding only where the statistics say that they never change", async () => {
    const openpi = async (count: number, change = async (_: string) => {}) => {
      const columns = Array.from({ length: count }, (_, at) => `joint_${at}`);
      const robot = await robotFile({ cameras: VIEWS, columns, isRelative: () => false });
      return refusal(change, { robot }, join(PUBLISHERS, "pi05-openpi/checkpoint"));
    };
    const two = await openpi(2);
    expect(two).toContain(
      "2 state columns, but the statistics of column 2 are -0.7447211742401123 to 0.21588768064975739: expected 14",
    );
    expect(two).toContain("2 action columns, but the statistics of column 2 are -0.38982850313186646 to");
    const padded = json("assets/trossen/norm_stats.json", ({ norm_stats: all }) => {
      for (const { q01, q99 } of [all.state, all.actions]) for (const values of [q01, q99]) values.push(0, 0);
    });
    expect(await openpi(14, padded)).toBe("no problem");
  });
});
