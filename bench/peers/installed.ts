/**
 * What the peers need, each set in a folder of its own under dist/peers, so that one that cannot be installed takes no other along.
 * Versions are exact; pip's files name every package of a set, so that nothing is resolved anew. npm's is a package.json: with
 * @hono/node-server 1.19.19, which npm would take, this Portkey answers every stream with 500.
 */
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");

export const SETS = {
  robots: { by: "pip", what: "robots.txt" },
  litellm: { by: "pip", what: "litellm.txt" },
  tensorzero: { by: "pip", what: "tensorzero.txt" },
  portkey: { by: "npm", what: "portkey.json" },
} as const satisfies Readonly<Record<string, { readonly by: "pip" | "npm"; readonly what: string }>>;
export type SetName = keyof typeof SETS;
export const SET_NAMES = Object.keys(SETS) as SetName[];

export function folderOf(name: SetName): string {
  return join(ROOT, "dist/peers", name);
}

export function requirementsOf(name: SetName): string {
  return join(import.meta.dir, SETS[name].what);
}

/** The Python of a set. */
export function pythonOf(name: SetName): string {
  return join(folderOf(name), "bin/python");
}

/** Written last; holds what was asked for, so that a set is made anew when its versions change. */
export function markerOf(name: SetName): string {
  return join(folderOf(name), "installed.txt");
}

/** The text of its requirements. */
export async function wantedOf(name: SetName): Promise<string> {
  return await Bun.file(requirementsOf(name)).text();
}

export async function isInstalled(name: SetName): Promise<boolean> {
  const marker = Bun.file(markerOf(name));
  return (await marker.exists()) && (await marker.text()) === (await wantedOf(name));
}
