/** The metrics that a service counts while it runs; what can be read at any time is added when they are asked for (metrics.ts). */
import { type Counter, type Durations, Metrics } from "../../std/metrics.ts";

export interface ServiceMetrics {
  readonly metrics: Metrics;
  /** Answered requests. */
  readonly requests: Counter<"route" | "status">;
  /** Charges whose price was above what was held, by the priced id. */
  readonly clamped: Counter<"item">;
  /** Calls to the providers of language models, by how they ended. */
  readonly calls: Counter<"model" | "outcome">;
  /** Responses whose provider reported no usage. */
  readonly estimates: Counter<"model">;
  /** From an observation's arrival to the model's start. */
  readonly starts: { readonly chat: Durations; readonly episode: Durations };
}

/**
 * Every time that matters is the bound of a bucket: 1 and 3 ms (budget on a socket, p50 and p99), 4 and 8 ms (over HTTP),
 * 33 ms (a period at 30 Hz), 400 ms (motors without rows are damped) and 10 s (`chunk_seconds`).
 */
const START_BUCKETS_MS = [
  0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 12, 20, 33, 50, 100, 200, 400, 1_000, 2_000, 5_000, 10_000,
] as const;

export function serviceMetrics(): ServiceMetrics {
  const metrics = new Metrics();
  const starts = metrics.durations(
    "tendon_start_ms",
    "From an observation's arrival (over HTTP with its first byte) to the model's start, by route.",
    { bucketsMs: START_BUCKETS_MS, label: "route", values: ["chat", "episode"] },
  );
  return {
    metrics,
    requests: metrics.counter("tendon_requests_total", "Answered requests.", ["route", "status"]),
    clamped: metrics.counter(
      "tendon_charges_clamped_total",
      "Charges whose price was above what was held; they cost what was held.",
      ["item"],
    ),
    calls: metrics.counter("tendon_llm_calls_total", "Calls to the providers of language models.", [
      "model",
      "outcome",
    ]),
    estimates: metrics.counter(
      "tendon_llm_estimated_total",
      "Responses whose provider reported no usage; the service's estimate was charged.",
      ["model"],
    ),
    starts: { chat: starts("chat"), episode: starts("episode") },
  };
}
