/** The table `[gpu]` and its keys in a model's table. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ortFolders } from "../../src/config/environment.ts";
import { gpuOptions } from "../../src/config/gpu.ts";
import { serveConfig } from "../../src/config/serve.ts";
import { planModels } from "../../src/service/models.ts";
import { Problem } from "../../src/std/problem.ts";
import { Place } from "../program/program.ts";
import { manifest } from "../robot/manifests.ts";
import { MODEL } from "../robot/stage.ts";
import { temporaryFolder } from "../store/temporary.ts";

async function read(toml: string) {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "tendon.toml");
  await writeFile(path, toml);
  return await serveConfig({ config: path, dev: true, json: false }, { HOME: dir.path });
}

async function planned(toml: string) {
  const config = await read(toml);
  if (config instanceof Problem) throw new Error(config.message);
  const plan = planModels([{ manifest: manifest(), paths: new Map() }], config);
  if (plan instanceof Problem) throw new Error(plan.message);
  return plan[0]?.gpu;
}

const ALL_DEFAULTS = {
  precision: "f32",
  cudaGraph: false,
  ownKernels: false,
  arenaBytesMax: undefined,
  engineCache: true,
} as const;

test("without a table a GPU computes what the CPU computes", async () => {
  expect(await planned("")).toEqual(ALL_DEFAULTS);
  expect(gpuOptions()).toEqual(ALL_DEFAULTS);
});

test("what a model's table says wins over [gpu], which wins over the defaults", async () => {
  const host = '[gpu]\nprecision = "bf16"\nown_kernels = true\narena_mib_max = 4096\nengine_cache = false\n';
  const own = `[robot."${MODEL}"]\nprecision = "f16"\nown_kernels = false\ncuda_graph = true\n`;
  expect(await planned(host)).toEqual({
    ...ALL_DEFAULTS,
    precision: "bf16",
    ownKernels: true,
    arenaBytesMax: 4 * 2 ** 30,
    engineCache: false,
  });
  expect(await planned(host + own)).toEqual({
    ...ALL_DEFAULTS,
    precision: "f16",
    cudaGraph: true,
    arenaBytesMax: 4 * 2 ** 30,
    engineCache: false,
  });
});

test("every wrong key and value is told with its table and what was expected", async () => {
  const message = async (toml: string) => {
    const config = await read(toml);
    return config instanceof Problem ? `${config.exit} ${config.message}` : "accepted";
  };
  const robot = `[robot."${MODEL}"]\n`;
  expect([
    await message('[gpu]\nprecision = "f8"'),
    await message("[gpu]\narena_mib_max = 0"),
    await message('[gpu]\ncuda_graph = "on"'),
    await message("[gpu]\ncuda_grahp = true"),
    await message("gpu = 5"),
    await message(`${robot}precision = "half"`),
    await message(`${robot}engine_cash = true`),
    await message("[gpu]\nown_kernels = 1"),
  ]).toEqual([
    expect.stringMatching(/^2 .*: \[gpu\]: precision must be "f32", "f16" or "bf16", not "f8"$/),
    expect.stringMatching(/^2 .*: \[gpu\]: arena_mib_max must be a whole number from 1 to 1048576, not 0$/),
    expect.stringMatching(/^2 .*: \[gpu\]: cuda_graph must be true or false, not "on"$/),
    expect.stringMatching(/^2 .*: \[gpu\]: unknown key 'cuda_grahp'; did you mean 'cuda_graph'\?$/),
    expect.stringMatching(/^2 .*: \[gpu\] must be a table, not 5$/),
    expect.stringMatching(
      /^2 .*\[robot\."vendorB\/molmoact2:yam"\]: precision must be "f32", "f16" or "bf16", not "half"$/,
    ),
    expect.stringMatching(/unknown key 'engine_cash'; did you mean 'engine_cache'\?$/),
    expect.stringMatching(/own_kernels must be true or false, not 1$/),
  ]);
});

test("config prints the table with every default, a model's keys only where they are set, and the folder of ONNX Runtime", async () => {
  await using place = await Place.make();
  const path = join(place.dir, "tendon.toml");
  await writeFile(path, `[gpu]\nown_kernels = true\n[robot."${MODEL}"]\nprecision = "f16"\n`);
  const { stdout } = await place.run(["config", "--config", path], { TENDON_ORT_DIR: "/opt/ort" });
  expect(stdout).toContain("# TENDON_ORT_DIR: ONNX Runtime comes from /opt/ort");
  const printed = Bun.TOML.parse(stdout) as { gpu: object; robot: Record<string, object> };
  expect(printed.gpu).toEqual({
    precision: "f32",
    cuda_graph: false,
    own_kernels: true,
    engine_cache: true,
  });
  expect(printed.robot[MODEL]).toMatchObject({ precision: "f16" });
  expect(printed.robot[MODEL]).not.toHaveProperty("own_kernels");
});

test("the folder of ONNX Runtime is that of the variable, or the one that setup fills; none refuses both", () => {
  const env = { HOME: "/h", XDG_CACHE_HOME: "/k" };
  expect(ortFolders(env)).toEqual({ kept: "/k/tendon/gpu" });
  expect(ortFolders({ ...env, TENDON_ORT_DIR: "" })).toEqual({ kept: "/k/tendon/gpu" });
  expect(ortFolders({ ...env, TENDON_ORT_DIR: "/opt/ort/" })).toEqual({ named: "/opt/ort" });
  expect(ortFolders({ ...env, TENDON_ORT_DIR: "none" })).toEqual({});
});
