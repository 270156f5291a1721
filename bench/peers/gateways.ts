/** Calls to a language model: the provider alone, tendon, and other gateways in front of the same provider, none with a ledger but ours. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median } from "../../src/measure/stats.ts";
import { Problem } from "../../src/std/problem.ts";
import { setUp } from "../llm/setup.ts";
import { callsPerSecond, direct, plainCalls, type Target, timedStream, wholeStreams } from "../llm/target.ts";
import { processorTime, since } from "../process.ts";
import type { Figure } from "../proof.ts";
import { type Column, type Contender, type Rounds, type Runner, ratio, shownOf } from "../turns.ts";
import { folderOf, pythonOf, type SetName } from "./install.ts";
import { PeerProcess } from "./process.ts";

const PLAIN_CONNECTIONS = 64;
const STREAM_CONNECTIONS = 16;
const STREAM_TOKENS = 20;

const PROVIDER = "provider alone";
const OWN = "tendon";

export interface CallPlan {
  /** One after the other. */
  readonly calls: number;
  /** One after the other, for the time to the first token. */
  readonly firsts: number;
  /** Over PLAIN_CONNECTIONS at once. */
  readonly burst: number;
  /** Over STREAM_CONNECTIONS at once, of STREAM_TOKENS. */
  readonly streams: number;
}

interface CallTurn {
  readonly plainMs: readonly number[];
  /** Times from a request to its first token. */
  readonly firstMs: readonly number[];
  readonly callsPerSecond: number;
  readonly streamsPerSecond: number;
  /** Time of all threads of the process for one of the calls over PLAIN_CONNECTIONS. */
  readonly processorMs: number;
}

interface Called {
  readonly plain: Target;
  readonly stream: Target;
  readonly pid: number;
  stop(): Promise<unknown>;
}

/** Provider and service are started here, because the gateways need the provider's address. */
export async function callContenders(
  plan: CallPlan,
  installed: readonly GatewayName[],
): Promise<Contender<CallTurn>[] | Problem> {
  const setup = await setUp();
  if (setup instanceof Problem) return setup;
  const { provider, providerUrl, plain, stream, child } = setup;
  const stop = async () => await setup[Symbol.asyncDispose]();
  const kept = async () => undefined;
  const own = (name: string, called: Called): Contender<CallTurn> => ({
    name,
    own: true,
    start: async () => runner(called, plan),
  });
  const gateways = installed.map((name) => ({
    name: GATEWAYS[name].title,
    own: false,
    start: async () => {
      const called = await startGateway(name, providerUrl);
      return called instanceof Problem ? called : runner(called, plan);
    },
  }));
  return [
    own(PROVIDER, { plain: provider, stream: provider, pid: setup.providerPid, stop: kept }),
    ...gateways,
    own(OWN, { plain, stream, pid: child.pid, stop }),
  ];
}

function runner({ plain, stream, pid, stop }: Called, plan: CallPlan): Runner<CallTurn> {
  return {
    stop,
    async turn() {
      try {
        return await turn(plain, stream, pid, plan);
      } catch (error) {
        return new Problem((error as Error).message);
      }
    },
  };
}

async function turn(plain: Target, stream: Target, pid: number, plan: CallPlan): Promise<CallTurn> {
  const plainMs = await plainCalls(plain, plan.calls);
  const firstMs: number[] = [];
  for (let at = 0; at < plan.firsts; at += 1) firstMs.push((await timedStream(stream, STREAM_TOKENS)).firstMs);
  const before = await processorTime(pid);
  const perSecond = await callsPerSecond(plain, PLAIN_CONNECTIONS, plan.burst);
  const { allMs } = since(before, await processorTime(pid));
  const beforeMs = performance.now();
  await wholeStreams(stream, STREAM_CONNECTIONS, plan.streams, STREAM_TOKENS);
  const streamsPerSecond = (1000 * plan.streams) / (performance.now() - beforeMs);
  return { plainMs, firstMs, callsPerSecond: perSecond, streamsPerSecond, processorMs: allMs / plan.burst };
}

const READY_MS_MAX = 120_000;
const ASK_AGAIN_MS = 200;

/** Each is started with the provider's address and a folder for its configuration. */
type Start = (providerUrl: string, folder: string) => Promise<Started | Problem>;
interface Started {
  readonly target: Target;
  readonly process: PeerProcess;
}

export const GATEWAYS = {
  litellm: { title: "LiteLLM", start: litellm },
  tensorzero: { title: "TensorZero", start: tensorzero },
} as const satisfies Partial<Record<SetName, { readonly title: string; readonly start: Start }>>;
export type GatewayName = keyof typeof GATEWAYS;

/** Resolves when a call through it has been answered. */
async function startGateway(name: GatewayName, providerUrl: string): Promise<Called | Problem> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-peer-"));
  const started = await GATEWAYS[name].start(providerUrl, folder);
  if (started instanceof Problem) return started;
  const { process, target } = started;
  const stop = async () => {
    await process.stop();
    await rm(folder, { recursive: true, force: true });
  };
  const problem = await answering(process, target);
  if (problem === undefined) return { plain: target, stream: target, pid: process.pid, stop };
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

/** Free now; for programs that cannot choose one themselves. */
function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** Limits: tendon's figure over the gateway's. TensorZero is compiled too. */
const LIMITS = { LiteLLM: { added: 0.333, perSecondLeast: 4 }, TensorZero: { added: 1, perSecondLeast: 1 } } as const;

const COLUMNS = {
  plain: column("plain call, p50", "ms", ({ plainMs }) => plainMs),
  first: column("first token of a stream, p50", "ms", ({ firstMs }) => firstMs),
  calls: column(`plain calls a second, ${PLAIN_CONNECTIONS} connections`, "1", (turn) => turn.callsPerSecond),
  streams: column(`streams a second, ${STREAM_CONNECTIONS} connections`, "1", (turn) => turn.streamsPerSecond),
  processor: column("processor time of its process for a plain call", "ms", ({ processorMs }) => processorMs),
} as const;

function column(measure: string, unit: string, of: (turn: CallTurn) => number | readonly number[]): Column<CallTurn> {
  return { measure, unit, of: (turns) => median(turns.flatMap(of)) };
}

/** The table of all, and tendon's figures over those of each gateway. Added: beyond the provider alone, within a round. */
export function callFigures(rounds: Rounds<CallTurn>): { readonly table: string; readonly figures: Figure[] } {
  const { names, figures, table } = shownOf("calls", rounds, Object.values(COLUMNS));
  const ratios = Object.values(GATEWAYS).filter(({ title }) => names.includes(title));
  return { table, figures: [...figures, ...ratios.flatMap(({ title }) => ratiosOf(rounds, title))] };
}

function ratiosOf(rounds: Rounds<CallTurn>, name: keyof typeof LIMITS): Figure[] {
  const { added: limit, perSecondLeast: least } = LIMITS[name];
  const over = (measure: string, of: Parameters<typeof ratio<CallTurn>>[2], limits: Partial<Figure>): Figure => ({
    ...{ measure: `${OWN} over ${name}, ${measure}`, value: ratio(rounds, [OWN, name], of), unit: "1" },
    ...limits,
  });
  const added =
    ({ of }: Column<CallTurn>) =>
    (turns: readonly CallTurn[], round: ReadonlyMap<string, readonly CallTurn[]>) =>
      of(turns) - of(round.get(PROVIDER) ?? []);
  return [
    over("added to a plain call, p50", added(COLUMNS.plain), { limit }),
    over("added to a first token, p50", added(COLUMNS.first), { limit }),
    over("plain calls a second", COLUMNS.calls.of, { least }),
    over("streams a second", COLUMNS.streams.of, { least }),
  ];
}
