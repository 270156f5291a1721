/** `tendon models`: every id that a request can name, of robots and of language models, with the facts that a client needs. */
import { REFERENCE_WARNING } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import { installedManifests } from "../bundle/read.ts";
import { serveConfig } from "../config/serve.ts";
import { Problem } from "../error/problem.ts";
import { planProviders } from "../service/providers.ts";
import { systemClock } from "../std/clock.ts";
import { table } from "../std/text-table.ts";
import type { Command } from "./frame/command.ts";
import { answer, printNote } from "./frame/print.ts";
import { languageModels, languageModelsText } from "./models/language-models.ts";

export const models: Command = {
  name: "models",
  summary: "List every id of a robot or language model, with its facts.",
  flags: {
    models: { value: "DIR", about: "Folder of bundles (default: as serve)." },
    config: { value: "FILE", about: "Configuration file (default: as serve)." },
    json: { about: "Print them as one JSON object." },
  },
  async run(given) {
    // What is listed does not depend on `--dev`; drills, which do, are none of this command's business.
    const flags = { models: given.text("models"), config: given.text("config"), dev: true, json: false };
    const config = await serveConfig(flags);
    if (config instanceof Problem) return config;
    const manifests = await installedManifests(config.modelsDir);
    if (manifests instanceof Problem) return manifests;
    const llm = languageModels(config);
    const planned = planProviders(config, systemClock);
    if (planned instanceof Problem)
      await printNote(`tendon models: serve refuses this configuration: ${planned.message}`);
    const text = `${modelsText(manifests)}\n${languageModelsText(llm)}`;
    return answer(given, { data: manifests.map(modelFacts), llm }, text);
  },
};

/** One model as JSON: contract section 2, Model facts. */
export function modelFacts(manifest: Manifest): object {
  const { id, title, licence, source, family, reference, stateful, cameras, frames, state, action } = manifest;
  return {
    id,
    title,
    family,
    licence,
    source,
    reference,
    stateful,
    cameras,
    frames,
    state: {
      kind: state.kind,
      columns: state.columns.map(({ name, unit, from, index }) => ({ name, unit, from, index })),
    },
    rows: action.rows,
    dt: 1 / action.hz,
    action_space: action.space,
    action_dim: action.columns.length,
    action_columns: action.columns.map(({ name, unit, min, max }) => ({ name, unit, min, max })),
  };
}

/** For people: a table of models, then their titles and licences. */
export function modelsText(manifests: readonly Manifest[]): string {
  if (manifests.length === 0) return "no bundles; build one with: tendon bundle build MODEL_DIR --out DIR\n";
  const head = ["id", "state", "cameras", "frames", "rows", "dt", "action", "stateful", "weights"];
  const rows = manifests.map(({ id, state, cameras, frames, action, stateful, reference }) => [
    id,
    state.kind,
    cameras.join(","),
    `${frames.first}/${frames.later}`,
    String(action.rows),
    `1/${action.hz}`,
    `${action.space}, ${action.columns.length}`,
    stateful ? "yes" : "no",
    reference ? "RANDOM (reference)" : "trained",
  ]);
  const titles = manifests.map(({ id, title, licence }) => `${id}: ${title} (${licence})`);
  const note = manifests.some((manifest) => manifest.reference) ? `\n${REFERENCE_WARNING}\n` : "";
  return `${table([head, ...rows])}\n${titles.join("\n")}\n${note}`;
}
