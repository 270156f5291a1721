/** What `tendon doctor` says of GPUs: the driver, where ONNX Runtime is from, and each provider: does it run, and if not, what it lacks. */
import type { Devices, Driver } from "../../engine/devices.ts";
import type { OrtFolder } from "../../engine/ort-folder.ts";
import { packageOf, TENSORRT_PACKAGE } from "../setup/packages.ts";
import { type Check, green, red } from "./checks.ts";

/** The first driver version that serves CUDA 13. */
const DRIVER = "the NVIDIA driver, 580 or newer,";

const SHIPPED = "WebGPU is in the ONNX Runtime that ships alone; TENDON_ORT_DIR=none uses that";

/** `gpus`: those that the kernel shows. A provider that does not run is never red: a model that needs it is. */
export function gpuChecks({ driver, tried }: Devices, folder: OrtFolder | undefined, gpus: readonly string[]): Check[] {
  return [
    driverCheck(driver, gpus),
    ...(folder === undefined ? [] : [green("ONNX Runtime", `of ${folder.dir}, with ${folder.providers.join(", ")}`)]),
    ...tried.map(({ device, refused }) => {
      const check = providerCheck(device, refused, gpus.length > 0 || driver.state === "ready");
      const without = folder !== undefined && refused !== null && check.name === "webgpu";
      return without ? { ...check, todo: SHIPPED } : check;
    }),
  ];
}

function driverCheck(driver: Driver, gpus: readonly string[]): Check {
  const name = "GPU driver";
  switch (driver.state) {
    case "ready": {
      const each = driver.devices.map(
        ({ name, arch, bytes }) => `${name} (${arch}, ${(bytes / 2 ** 30).toFixed(0)} GiB)`,
      );
      return green(name, `serves CUDA ${driver.version}: ${each.join(", ")}`);
    }
    case "old":
      return red(
        name,
        `serves CUDA ${driver.version}, ${driver.needed} is needed; install ${DRIVER} or use device = "cpu"`,
      );
    case "failed":
      return red(name, `does not start: ${driver.reason}; restart the machine, or install ${DRIVER} again`);
    case "no_device":
      return green(
        name,
        `serves CUDA ${driver.version}, and shows this process no GPU`,
        "in a container: start it with --gpus all",
      );
    case "absent":
      if (gpus.length === 0) return green(name, `none: ${driver.reason}`);
      return red(name, `none: ${driver.reason}; install ${DRIVER} or start the container with --gpus all`);
  }
}

/** `wanted`: there is a GPU, so that what is missing is worth its while. */
export function providerCheck(device: string, refused: string | null, wanted: boolean): Check {
  const name = device.split(":")[0] ?? device;
  if (refused === null) return green(name, `${device} runs a graph`);
  const note = broughtBy(refused);
  return green(name, `not used: ${refused}`, wanted || !note?.includes("setup gpu") ? note : `${note}; it needs a GPU`);
}

/** Which package brings the library that a sentence names as missing. */
export function broughtBy(reason: string): string | undefined {
  // The last one: a provider's own library stands before the one that it lacks.
  const library = [...reason.matchAll(/\blib[\w+-]+\.so[.\d]*/g)]
    .map(([file]) => file.replace(/\.$/, ""))
    .filter((file) => file !== "libonnxruntime.so.1")
    .at(-1);
  if (library === undefined) return undefined;
  if (library.startsWith("libcuda.so")) return `${DRIVER} brings ${library}`;
  if (library.startsWith("libvulkan")) return `the package libvulkan1 of Debian and Ubuntu brings ${library}`;
  const brings = packageOf(library);
  if (brings === undefined) return undefined;
  const command = brings === TENSORRT_PACKAGE ? "tendon setup gpu --tensorrt" : "tendon setup gpu";
  return `${brings.name} ${brings.version} of PyPI brings ${library}: ${command}`;
}
