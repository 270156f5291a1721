/** The addresses of the pages of runs, whose names and paths are a user's texts; and sizes as the pages show them. */
import type { RunName } from "../../std/run-names.ts";

export const RUNS_ADDRESS = "/account/runs";

export function runAddress({ robot, run }: RunName): string {
  return `${RUNS_ADDRESS}/${segment(robot)}/${segment(run)}`;
}

export function fileAddress(name: RunName, path: string): string {
  return `${runAddress(name)}/files/${path.split("/").map(segment).join("/")}`;
}

export function listAddress({ robot, after }: { readonly robot: string; readonly after?: string | undefined }): string {
  const query = new URLSearchParams({ ...(robot === "" ? {} : { robot }), ...(after === undefined ? {} : { after }) });
  return query.size === 0 ? RUNS_ADDRESS : `${RUNS_ADDRESS}?${query}`;
}

function segment(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

/** `1 byte`, `812 bytes`, `1.5 MiB`, `100 GiB`. */
export function sizeText(bytes: number): string {
  if (bytes === 1) return "1 byte";
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}
