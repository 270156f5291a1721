/** `tendon config`: what `serve` would run with, as tendon.toml says it, every default written out and every secret left out. */
import { ortFolders } from "../config/environment.ts";
import { effectiveSettings } from "../config/serve.ts";
import { Problem } from "../std/problem.ts";
import type { Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";
import { CONFIG_FLAG, DATA_FLAG, flagsOf, MODELS_FLAG } from "./frame/settings.ts";

export const config: Command = {
  name: "config",
  summary: "Print the effective configuration as TOML, secrets left out.",
  flags: {
    data: DATA_FLAG,
    models: MODELS_FLAG,
    config: CONFIG_FLAG,
    json: { about: "Print it as one JSON object." },
  },
  async run(given) {
    const effective = await effectiveSettings(flagsOf(given));
    if (effective instanceof Problem) return effective;
    const { configPath, top, gpu, oidc, llm, robot, secrets } = effective;
    const { named } = ortFolders();
    const lines = [
      `# What serve runs with here. Its file: ${configPath}`,
      ...secrets.map((name) => `# ${name} is set; it is not shown.`),
      ...linesOf(top),
      ...("models" in top ? [] : ["# models: those that ship with the executable"]),
      ...("blobs" in top ? [] : ["# blobs: the bytes of runs are in the data folder"]),
      ...(named === undefined ? [] : [`# TENDON_ORT_DIR: ONNX Runtime comes from ${named}`]),
      "",
      "[gpu]",
      ...linesOf(gpu),
      ...(oidc ? ["", "[oidc]", ...linesOf(oidc)] : []),
      ...tables("llm", llm),
      ...tables("robot", robot),
    ];
    return answer(given, { ...top, gpu, ...(oidc && { oidc }), llm, robot, secrets }, lines.join("\n"));
  },
};

function tables(kind: string, all: Readonly<Record<string, object>>): string[] {
  return Object.entries(all).flatMap(([id, table]) => ["", `[${kind}.${JSON.stringify(id)}]`, ...linesOf(table)]);
}

/** A text, a number, a truth value or a list of texts is written as in JSON. */
function linesOf(table: object): string[] {
  const said = Object.entries(table).filter(([, value]) => value !== undefined);
  return said.map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
}
