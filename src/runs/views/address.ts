/** Addresses of the pages of runs; names and paths are a user's texts. */

export interface RunName {
  readonly robot: string;
  readonly run: string;
}

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
