/** `tendon models`: every id that a request can name, of robots and of language models, with the facts that a client needs. */
import { armWarning, exactSize, weightWords } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import { type DeviceChoice, deviceText, placeReplicas } from "../config/devices.ts";
import { ROBOT_DEFAULT } from "../config/robot.ts";
import { type ServeConfig, serveConfig } from "../config/serve.ts";
import { isBackground, LLM_IDS, outputTokensDefault } from "../llm/models.ts";
import { installedManifests } from "../service/bundles.ts";
import { planProviders } from "../service/providers.ts";
import { systemClock } from "../std/clock.ts";
import { printable } from "../std/printable.ts";
import { Problem } from "../std/problem.ts";
import { table } from "../std/text-table.ts";
import type { Command } from "./frame/command.ts";
import { answer, printNote } from "./frame/print.ts";
import { CONFIG_FLAG, flagsOf, MODELS_FLAG } from "./frame/settings.ts";

export const models: Command = {
  name: "models",
  summary: "List every id of a robot or language model, with its facts.",
  flags: {
    models: MODELS_FLAG,
    config: CONFIG_FLAG,
    json: { about: "Print them as one JSON object." },
  },
  async run(given) {
    const config = await serveConfig(flagsOf(given));
    if (config instanceof Problem) return config;
    const manifests = await installedManifests(config.modelsDir);
    if (manifests instanceof Problem) return manifests;
    const llm = languageModels(config);
    const planned = planProviders(config, systemClock);
    if (planned instanceof Problem)
      await printNote(`tendon models: serve refuses this configuration: ${planned.message}`);
    const placed = manifests.map((manifest) => {
      const where = placeReplicas(config.robot.get(manifest.id) ?? ROBOT_DEFAULT);
      // What cannot be, `serve` refuses.
      return { manifest, ...(typeof where === "string" ? {} : { device: where.device }) };
    });
    const text = `${modelsText(placed)}\n${languageModelsText(llm)}`;
    return answer(given, { data: placed.map(modelFacts), llm }, text);
  },
};

/** A bundle, and the device that the configuration names for it, or for each of its replicas. */
interface ModelPlace {
  readonly manifest: Manifest;
  readonly device?: DeviceChoice | undefined;
}

/** One model as JSON: contract section 2, Model facts. */
export function modelFacts({ manifest, device }: ModelPlace): object {
  const { id, title, licence, source, family, reference, stateful, cameras, frames, state, action } = manifest;
  return {
    id,
    title,
    family,
    licence,
    source,
    reference,
    bundle: warningOf({ manifest, device }) === undefined ? "trained" : "reference",
    device: device ?? null,
    weights: manifest.weights ?? manifest.compute ?? "f32",
    stateful,
    cameras,
    frames,
    frame_size: exactSize(manifest),
    state: {
      kind: state.kind,
      columns: state.columns.map(({ name, unit, from, index }) => ({ name, unit, from, index })),
    },
    rows: action.rows,
    dt: 1 / action.hz,
    action_space: action.space,
    action_dim: action.columns.length,
    action_columns: action.columns.map(({ name, unit, min, max, max_jump, max_step }) => ({
      ...{ name, unit, min, max, max_jump, max_step },
    })),
  };
}

function warningOf({ manifest, device }: ModelPlace): string | undefined {
  return armWarning(manifest, typeof device === "string" ? device : undefined);
}

/** What moves the arm, and how the weights are kept where that is not float32. */
function weightsOf(manifest: Manifest, device: DeviceChoice | undefined): string {
  if (device === "echo") return "NONE (echo)";
  const kind = manifest.reference ? "RANDOM (reference)" : "trained";
  const kept = weightWords(manifest);
  return kept === "f32" ? kind : `${kind}, ${kept}`;
}

/** For people: a table of models, then their titles and licences. */
export function modelsText(placed: readonly ModelPlace[]): string {
  if (placed.length === 0) return "no bundles; build one with: tendon bundle build MODEL_DIR --out DIR\n";
  const head = ["id", "state", "cameras", "frames", "rows", "dt", "action", "stateful", "weights"];
  const rows = placed.map(({ manifest, device }) => {
    const { id, state, cameras, frames, action, stateful } = manifest;
    return [
      id,
      state.kind,
      cameras.join(","),
      `${frames.first}/${frames.later}`,
      String(action.rows),
      `1/${action.hz}`,
      `${action.space}, ${action.columns.length}`,
      stateful ? "yes" : "no",
      weightsOf(manifest, device),
    ];
  });
  const titles = placed.map(({ manifest: { id, title, licence }, device }) => {
    const where = device === undefined ? "" : `, ${typeof device === "string" ? `on ${device}` : deviceText(device)}`;
    return `${id}: ${title} (${licence})${where}`;
  });
  const warnings = new Set(placed.flatMap((one) => warningOf(one) ?? []));
  const note = [...warnings].map((warning) => `\n${warning}\n`).join("");
  return `${table([head, ...rows])}\n${titles.join("\n")}\n${note}`;
}

/** The language models as they are listed: each with its provider, and whether it can answer. */
function languageModels({ llm, providerKeys }: Pick<ServeConfig, "llm" | "providerKeys">) {
  return LLM_IDS.map((id) => {
    const stream = isBackground(id) ? "buffered" : "live";
    const facts = { id, stream, max_output_tokens_default: outputTokensDefault(id) };
    const config = llm.get(id);
    if (config === undefined) return { ...facts, state: "not_configured", provider: null };
    const { baseUrl, protocol, model, apiKeyEnv } = config;
    const missing = apiKeyEnv !== undefined && !providerKeys.has(apiKeyEnv);
    const provider = { host: new URL(baseUrl).host, protocol, model, api_key_env: apiKeyEnv ?? null };
    return { ...facts, state: missing ? "key_missing" : "configured", provider };
  });
}

function languageModelsText(models: ReturnType<typeof languageModels>): string {
  const head = ["language model", "answers", "state", "provider", "protocol", "its model"];
  const rows = models.map(({ id, stream, state, provider }) => [
    id,
    stream === "live" ? "live" : "in the background",
    state === "key_missing" ? `key missing: set ${provider?.api_key_env}` : state.replace("_", " "),
    provider?.host ?? "-",
    provider?.protocol ?? "-",
    printable(provider?.model ?? "-"),
  ]);
  return table([head, ...rows]);
}
