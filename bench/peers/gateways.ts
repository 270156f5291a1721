/** Gateways in front of the same provider, each in a process of its own, none with a ledger or a log but ours. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Problem } from "../../src/std/problem.ts";
import { direct, plainCalls, type Target } from "../llm/target.ts";
import { folderOf, pythonOf, type SetName } from "./installed.ts";
import { PeerProcess } from "./process.ts";

const READY_MS_MAX = 120_000;
const ASK_AGAIN_MS = 200;

export interface Gateway {
  readonly target: Target;
  readonly pid: number;
  stop(): Promise<unknown>;
}

/** Each is started with the provider's address and a folder for its configuration. */
type Start = (providerUrl: string, folder: string) => Promise<Started | Problem>;
interface Started {
  readonly target: Target;
  readonly process: PeerProcess;
}

export const GATEWAYS = {
  litellm: { title: "LiteLLM", start: litellm },
  tensorzero: { title: "TensorZero", start: tensorzero },
  portkey: { title: "Portkey", start: portkey },
} as const satisfies Partial<Record<SetName, { readonly title: string; readonly start: Start }>>;
export type GatewayName = keyof typeof GATEWAYS;

/** Resolves when a call through it has been answered. */
export async function startGateway(name: GatewayName, providerUrl: string): Promise<Gateway | Problem> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-peer-"));
  const started = await GATEWAYS[name].start(providerUrl, folder);
  if (started instanceof Problem) return started;
  const { process, target } = started;
  const stop = async () => {
    await process.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const problem = await answering(process, target);
  if (problem === undefined) return { target, pid: process.pid, stop };
  await stop();
  return problem;
}

async function answering(process: PeerProcess, target: Target): Promise<Problem | undefined> {
  const until = performance.now() + READY_MS_MAX;
  for (;;) {
    try {
      await plainCalls(target, 1);
      return undefined;
    } catch (error) {
      if (!process.running) return await process.ended();
      if (performance.now() > until) return new Problem(`no call was answered: ${(error as Error).message}`);
    }
    await Bun.sleep(ASK_AGAIN_MS);
  }
}

/** One worker, as it starts by default; client and provider share the cores with it. */
async function litellm(providerUrl: string, folder: string): Promise<Started> {
  const config = join(folder, "litellm.yaml");
  const model = { model_name: "m", litellm_params: { model: "openai/m", api_base: providerUrl, api_key: "none" } };
  // YAML has all of JSON.
  await Bun.write(config, JSON.stringify({ model_list: [model], litellm_settings: { telemetry: false } }));
  const port = freePort();
  const flags = ["--config", config, "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"];
  const environment = { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR", LITELLM_MODE: "PRODUCTION" };
  const words = [join(folderOf("litellm"), "bin/litellm"), ...flags, "--telemetry", "False"];
  const process = PeerProcess.start("LiteLLM", words, { environment, silent: true });
  return { process, target: direct(`http://127.0.0.1:${port}/v1`) };
}

async function tensorzero(providerUrl: string, folder: string): Promise<Started | Problem> {
  const config = join(folder, "tensorzero.toml");
  const lines = [
    ...["[gateway]", "observability.enabled = false", "disable_pseudonymous_usage_analytics = true"],
    ...["[models.m]", 'routing = ["zero"]'],
    ...["[models.m.providers.zero]", 'type = "openai"', 'model_name = "m"', 'api_key_location = "none"'],
    `api_base = "${providerUrl}/"`,
  ];
  await Bun.write(config, `${lines.join("\n")}\n`);
  const words = [pythonOf("tensorzero"), join(import.meta.dir, "tensorzero_gateway.py"), config];
  const process = PeerProcess.start("TensorZero", words, { environment: { RUST_LOG: "error" } });
  const address = await process.line();
  if (address instanceof Problem) return address;
  return { process, target: direct(address, "tensorzero::model_name::m") };
}

async function portkey(providerUrl: string): Promise<Started> {
  const port = freePort();
  const program = join(folderOf("portkey"), "node_modules/@portkey-ai/gateway/build/start-server.js");
  const words = ["node", program, `--port=${port}`, "--headless"];
  const process = PeerProcess.start("Portkey", words, { environment: { NODE_ENV: "production" }, silent: true });
  const headers = { "x-portkey-provider": "openai", "x-portkey-custom-host": providerUrl };
  return { process, target: direct(`http://127.0.0.1:${port}/v1`, "m", headers) };
}

/** Free now; for programs that cannot choose one themselves. */
function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
