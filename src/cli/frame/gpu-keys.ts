/** Keys of the table `[gpu]` as a flag has them. */
import { readTable } from "../../config/check.ts";
import { type GpuSettings, GpuTable } from "../../config/gpu.ts";
import type { Problem } from "../../std/problem.ts";

/** `key=value,…`: numbers, true and false as such, all else as a text. A key alone is true. */
export function gpuKeys(words: string): GpuSettings | Problem {
  const pairs = words.split(",").filter((word) => word !== "");
  const table = Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      const [key, value] = at < 0 ? [pair, "true"] : [pair.slice(0, at), pair.slice(at + 1)];
      if (value === "true" || value === "false") return [key, value === "true"];
      return [key, /^\d+$/.test(value) ? Number(value) : value];
    }),
  );
  return readTable(GpuTable, table, "--gpu");
}
