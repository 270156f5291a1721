/** Mesa's software Vulkan, lavapipe: a device on which a machine without a GPU can run WebGPU. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { environment, testRequirement } from "../../src/config/environment.ts";

/** The first Mesa with all that WebGPU needs says that its lavapipe has Vulkan 1.4. Debian 12's own, of 1.3, has not. */
const VULKAN_MIN = [1, 4] as const;

const REASON =
  'no lavapipe with Vulkan 1.4; LAVAPIPE_FILE="$(.ci/mesa FOLDER)" brings one, without a change to the machine';

interface Driver {
  /** What tells the Vulkan loader and the dynamic linker of it. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The driver of LAVAPIPE_FILE, or the system's. */
function find(): Driver | undefined {
  const system = "/usr/share/vulkan/icd.d";
  const named = environment().LAVAPIPE_FILE;
  const listed = existsSync(system) ? readdirSync(system).map((name) => join(system, name)) : [];
  const files = named === undefined ? listed.filter((path) => path.includes("lvp_icd")) : [named];
  const file = files.find(isNew);
  if (file === undefined) return undefined;
  // Packages may lie in a folder of their own, with all that they need.
  const libraries = resolve(dirname(file), "../../../lib/x86_64-linux-gnu");
  // One thread: most of these operators are shorter than waking a second one.
  return { environment: { VK_DRIVER_FILES: file, LD_LIBRARY_PATH: libraries, LP_NUM_THREADS: "1" } };
}

function isNew(file: string): boolean {
  if (!existsSync(file)) return false;
  const { ICD } = JSON.parse(readFileSync(file, "utf8")) as { ICD: { api_version: string } };
  const [major = 0, minor = 0] = ICD.api_version.split(".").map(Number);
  return major > VULKAN_MIN[0] || (major === VULKAN_MIN[0] && minor >= VULKAN_MIN[1]);
}

const driver = find();
const absent = driver === undefined && testRequirement() === "none";

export const LAVAPIPE = {
  absent,
  title: absent ? `WebGPU on lavapipe: skipped, ${REASON}` : "WebGPU on lavapipe",
  environment: driver?.environment ?? {},
};
