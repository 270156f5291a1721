/** Where configuration, data and cache are (contract sections 6 and 8). */
import { homedir } from "node:os";
import { join } from "node:path";
import { type Environment, environment } from "./environment.ts";

/** By the XDG rules; an XDG variable that is not absolute is ignored, as they say. */
export function folders(env: Environment = environment()): { config: string; data: string; cache: string } {
  const home = env.HOME || homedir();
  const folder = (variable: string | undefined, fallback: string) =>
    join(variable?.startsWith("/") ? variable : join(home, fallback), "tendon");
  return {
    config: folder(env.XDG_CONFIG_HOME, ".config"),
    data: folder(env.XDG_DATA_HOME, ".local/share"),
    cache: folder(env.XDG_CACHE_HOME, ".cache"),
  };
}
