/** One turn of calls to a language model: the same for the provider alone, for tendon and for each gateway. */

import { processorTime, since } from "../../src/measure/process.ts";
import { Problem } from "../../src/std/problem.ts";
import { setUp } from "../llm/setup.ts";
import { callsPerSecond, plainCalls, type Target, timedStream, wholeStreams } from "../llm/target.ts";
import { GATEWAYS, type GatewayName, startGateway } from "./gateways.ts";
import type { Contender, Runner } from "./in-turns.ts";

export const PLAIN_CONNECTIONS = 64;
export const STREAM_CONNECTIONS = 16;
const STREAM_TOKENS = 20;

export const PROVIDER = "provider alone";
export const OWN = "tendon";

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

export interface CallTurn {
  readonly plainMs: readonly number[];
  /** From a request to its first token. */
  readonly firstMs: readonly number[];
  readonly callsPerSecond: number;
  readonly streamsPerSecond: number;
  /** Of all threads of the process, for one of the calls over PLAIN_CONNECTIONS. */
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
      const started = await startGateway(name, providerUrl);
      if (started instanceof Problem) return started;
      return runner({ ...started, plain: started.target, stream: started.target }, plan);
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
