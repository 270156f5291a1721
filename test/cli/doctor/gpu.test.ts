/** What doctor says of the driver and of each provider, from what the engine found. */
import { expect, test } from "bun:test";
import { bundleCheck } from "../../../src/cli/doctor/checks.ts";
import { broughtBy, gpuChecks, providerCheck } from "../../../src/cli/doctor/gpu.ts";
import { type Driver, readDevices } from "../../../src/engine/devices.ts";
import { Problem } from "../../../src/std/problem.ts";

const absent: Driver = { state: "absent", reason: "libcuda.so.1: cannot open shared object file" };
const CARD = "NVIDIA H200";

function driver(state: Driver, gpus: readonly string[] = []) {
  const [check] = gpuChecks({ driver: state, tried: [] }, undefined, gpus);
  return check;
}

test("a missing driver is red only where there is a GPU; an old or broken one always, with what to install", () => {
  expect(driver(absent)).toMatchObject({ ok: true, found: expect.stringContaining("libcuda.so.1") });
  expect(driver(absent, [CARD])).toMatchObject({ ok: false, todo: expect.stringContaining("580 or newer") });
  expect(driver({ state: "old", version: "12.8", needed: "13.0" })).toMatchObject({
    ok: false,
    found: "serves CUDA 12.8, 13.0 is needed",
    todo: expect.stringContaining("580 or newer"),
  });
  expect(
    driver({ state: "failed", version: "13.0", reason: "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)" }),
  ).toMatchObject({ ok: false, found: expect.stringContaining("803"), todo: expect.stringContaining("restart") });
  expect(driver({ state: "no_device", version: "13.0" })).toMatchObject({
    ok: true,
    todo: expect.stringContaining("--gpus all"),
  });
  const devices = [{ name: CARD, arch: "sm_90", bytes: 140 * 2 ** 30 }];
  expect(driver({ state: "ready", version: "13.0", devices }, [CARD])).toMatchObject({
    ok: true,
    found: "serves CUDA 13.0: NVIDIA H200 (sm_90, 140 GiB)",
  });
});

test("the package that brings a missing library is named, with the command that fetches it", () => {
  const failed = (provider: string, library: string) =>
    broughtBy(`Failed to load library /x/libonnxruntime_providers_${provider}.so with error: ${library}: cannot open`);
  const setup = "tendon setup gpu";
  expect(broughtBy("libonnxruntime_providers_cuda.so is not beside libonnxruntime.so.1")).toStartWith(
    "onnxruntime-gpu 1.30.0 ",
  );
  for (const [library, name] of [
    ["libcudart.so.13", "nvidia-cuda-runtime"],
    ["libcublasLt.so.13", "nvidia-cublas"],
    ["libcurand.so.10", "nvidia-curand"],
    ["libcufft.so.12", "nvidia-cufft"],
    ["libcudnn_graph.so.9", "nvidia-cudnn-cu13"],
    ["libnvrtc.so.13", "nvidia-cuda-nvrtc"],
  ] as const) {
    expect(failed("cuda", library)).toMatch(new RegExp(`^${name} [\\d.]+ of PyPI brings ${library}: ${setup}$`));
  }
  expect(failed("tensorrt", "libnvinfer.so.10")).toEndWith(`brings libnvinfer.so.10: ${setup} --tensorrt`);
  expect(failed("cuda", "libcuda.so.1")).toBe("the NVIDIA driver, 580 or newer, brings libcuda.so.1");
  expect(broughtBy("libvulkan.so.1: cannot open shared object file")).toContain("libvulkan1");
  expect(broughtBy("no GPU: neither /dev/dri/renderD128 nor /dev/nvidia0 is there")).toBeUndefined();
});

test("a provider that does not run is not red: the model that needs it is", () => {
  const reason = "libonnxruntime_providers_cuda.so is not beside libonnxruntime.so.1";
  expect(providerCheck("cuda:0", reason, true)).toMatchObject({ name: "cuda", ok: true, found: `not used: ${reason}` });
  expect(providerCheck("cuda:0", reason, true).todo).toEndWith("tendon setup gpu");
  expect(providerCheck("cuda:0", reason, false).todo).toEndWith("it needs a GPU");
  expect(providerCheck("webgpu:0", null, true)).toEqual({ name: "webgpu", ok: true, found: "webgpu:0 runs a graph" });
  const refused = [
    { device: "cuda:0", reason },
    { device: "tensorrt:0", reason: "its rows are wrong" },
  ];
  const sessionMemory = { places: 0, placesOnDevice: 0, hostMemoryBecause: undefined, slotBytes: 0, room: undefined };
  const bundle = bundleCheck(
    { id: "a/b", reference: false },
    { device: "cpu", devices: ["cpu"], refused, slots: 0, sessionMemory, flowReason: null },
    [{ device: "cuda:0", refused: reason }],
  );
  expect(bundle.todo).toBe("tensorrt:0 refused: its rows are wrong");
});

test("a driver's refusal to a running model is shown with its reason, and is not red", () => {
  const noted = (card: {
    readonly registrationReason?: string;
    readonly timesReason?: string;
    readonly kernelsReason?: string;
  }) => {
    const sessionMemory = {
      ...{ places: 0, placesOnDevice: 0, slotBytes: 0 },
      ...{ room: undefined, hostMemoryBecause: undefined },
    };
    const launch = { kernels: false, kernelsReason: undefined };
    const own = {
      registeredBytes: 8192,
      registrationReason: undefined,
      timesReason: undefined,
      ...launch,
      ...card,
    };
    const placed = { device: "cuda:0", devices: ["cuda:0"], refused: [], slots: 0, sessionMemory, flowReason: null };
    const { ok, todo } = bundleCheck({ id: "a/b", reference: false }, { ...placed, driverDevice: own });
    expect(ok).toBe(true);
    return todo;
  };
  expect(noted({})).toBeUndefined();
  expect(noted({ registrationReason: "cuMemHostRegister: no room to page-lock 8192 bytes more" })).toBe(
    "what it copies goes through a buffer of the driver: cuMemHostRegister: no room to page-lock 8192 bytes more",
  );
  expect(noted({ kernelsReason: "why" })).toBe("own_kernels is set, but no kernel of tendon's runs: why");
  expect(noted({ timesReason: "cuStreamCreate: why" })).toEndWith("the device times no inference: cuStreamCreate: why");
});

test("where ONNX Runtime is from is told with its providers", () => {
  const folder = { dir: "/opt/ort", runtime: "/opt/ort/libonnxruntime.so.1", providers: ["cuda"] as const };
  const checks = gpuChecks({ driver: absent, tried: [] }, folder, []);
  expect(checks.map(({ name, found }) => `${name}: ${found}`)).toContain("ONNX Runtime: of /opt/ort, with cuda");
  const webgpu = [{ device: "webgpu:0", refused: "not in this build" }];
  const note = (of?: typeof folder) => gpuChecks({ driver: absent, tried: webgpu }, of, []).at(-1)?.todo;
  expect([note(), note(folder)]).toEqual([undefined, expect.stringContaining("TENDON_ORT_DIR=none")]);
});

test("the devices of this machine can be tried", async () => {
  const devices = await readDevices();
  if (devices instanceof Problem) throw new Error(devices.message);
  expect(devices.tried.map(({ device }) => device)).toEqual(["tensorrt:0", "cuda:0", "webgpu:0"]);
  for (const { refused } of devices.tried) expect(refused === null || refused.length > 0).toBe(true);
  expect(["absent", "old", "no_device", "failed", "ready"]).toContain(devices.driver.state);
});
