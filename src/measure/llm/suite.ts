/**
 * `tendon bench llm`: what does the service add to a call of a language model, its ledger on?
 *
 * The provider answers at once, on a thread of its own; calls go to it directly and through the service in turns, so that a machine
 * that gets slower does so for both. One call at a time. Outside of the window: the calls that warm both up.
 */
import type { Service } from "../../client/http.ts";
import { Problem } from "../../std/problem.ts";
import { startChild } from "../child.ts";
import { Histogram } from "../histogram.ts";
import { Neighbors } from "../interference/neighbors.ts";
import type { BenchTarget, Measurement } from "../target.ts";
import { FORMS, type Form, PATHS, type Path, targetOf, timedCall } from "./calls.ts";
import { PLAIN_MODEL, providerTables, STREAM_MODEL } from "./provider.ts";

/** Of each stream: its tokens are apart, so that each is sent on by itself. */
export const STREAM = { tokens: 20, gapMs: 5 } as const;
/** Calls of each kind that are not measured. */
const WARMUP_CALLS = 100;

export interface LlmMeasurement extends Measurement {
  readonly form: Form;
  readonly path: Path;
  readonly first: Histogram;
  readonly whole: Histogram;
}

export async function runLlmSuite(
  plan: BenchTarget & { readonly calls: number; readonly warmupCalls?: number },
): Promise<LlmMeasurement[] | Problem> {
  const opened = await Neighbors.open();
  if (opened instanceof Problem) return opened;
  const { neighbors, providerOrigin } = opened;
  try {
    await plan.progress?.(`measuring: ${plan.calls} calls of each kind`);
    const configuration = providerTables(providerOrigin, STREAM);
    const child = await startChild({ device: "echo", modelsDir: plan.models, configuration });
    if (child instanceof Problem) return child;
    const done = await inTurns(plan, providerOrigin, child.service).finally(() => child.stop());
    return done instanceof Problem ? await child.explain(done) : done;
  } finally {
    await neighbors.close();
  }
}

async function inTurns(
  { calls, warmupCalls = WARMUP_CALLS }: { readonly calls: number; readonly warmupCalls?: number },
  origin: string,
  service: Service,
): Promise<LlmMeasurement[] | Problem> {
  const kinds = FORMS.flatMap((form) =>
    PATHS.map((path) => ({
      ...{ form, path, first: new Histogram(), whole: new Histogram() },
      target: targetOf(path, form, origin, service, STREAM),
    })),
  );
  for (let call = -warmupCalls; call < calls; call += 1) {
    for (const { target, first, whole } of kinds) {
      const ms = await timedCall(target);
      if (ms instanceof Problem) return ms;
      if (call < 0) continue;
      first.record(ms.first);
      whole.record(ms.whole);
    }
  }
  return kinds.map(({ target: _, ...kind }) => ({
    ...kind,
    model: kind.form === "stream" ? STREAM_MODEL : PLAIN_MODEL,
    device: "a provider that answers at once",
    robots: 0,
    reference: false,
  }));
}
