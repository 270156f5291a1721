/** The flags of the commands that read the configuration of `serve`. */
import type { ServeFlags } from "../../config/serve.ts";
import type { CommandLine } from "./command.ts";

export const DATA_FLAG = { value: "DIR", about: "Data folder (default $XDG_DATA_HOME/tendon; TENDON_DATA)." } as const;
export const MODELS_FLAG = {
  value: "DIR",
  about: "Folder of model bundles (default: those that ship; TENDON_MODELS).",
} as const;
export const CONFIG_FLAG = {
  value: "FILE",
  about: "Configuration (default $XDG_CONFIG_HOME/tendon/tendon.toml; TENDON_CONFIG).",
} as const;

/** With `dev`, drills in the environment are allowed: for a command that serves nothing they do not matter. */
export function flagsOf(given: CommandLine, dev = true): ServeFlags {
  return {
    host: given.text("host"),
    port: given.text("port"),
    data: given.text("data"),
    models: given.text("models"),
    config: given.text("config"),
    dev,
    json: given.on("json"),
  };
}
