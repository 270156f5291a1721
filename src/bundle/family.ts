/** Shared by the families: finished graphs and their descriptions in the manifest. */
import type { Port } from "./graph.ts";
import type { Manifest } from "./manifest.ts";

type Graph = Manifest["graphs"]["prefill"];

/** One graph: its description in the manifest and its file. */
export interface Built {
  readonly description: Graph;
  readonly bytes: Uint8Array;
}

export interface Graphs {
  readonly manifest: Manifest["graphs"];
  /** File name → bytes. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

export function written({ prefill, extend, denoise }: { prefill: Built; extend?: Built; denoise: Built }): Graphs {
  const built = [prefill, ...(extend ? [extend] : []), denoise];
  return {
    manifest: {
      prefill: prefill.description,
      ...(extend ? { extend: extend.description } : {}),
      denoise: denoise.description,
    },
    files: new Map(built.map(({ description, bytes }) => [description.file, bytes])),
  };
}

/** The port as the manifest writes it. */
export function openPort(port: Port): { name: string; dtype: Port["dtype"]; shape: ("batch" | number)[] } {
  return { name: port.name, dtype: port.dtype, shape: [...port.shape] };
}
