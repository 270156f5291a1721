/** `tendon models`: every robot id with the facts that a client needs. */
import { REFERENCE_WARNING } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import { installedManifests } from "../bundle/read.ts";
import { Problem } from "../error/problem.ts";
import { table } from "../std/text-table.ts";
import type { Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";

export const models: Command = {
  name: "models",
  summary: "List every robot id with its facts.",
  flags: {
    models: { value: "DIR", about: "Folder of bundles (default: those that ship with the executable)." },
    json: { about: "Print them as one JSON object." },
  },
  async run(given) {
    const manifests = await installedManifests(given.text("models"));
    if (manifests instanceof Problem) return manifests;
    return answer(given, { data: manifests.map(modelFacts) }, modelsText(manifests));
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
