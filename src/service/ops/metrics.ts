/** What the service counts while it runs, and `GET /metrics`, which adds what can be read at any time. */
import type { LedgerWatch } from "../../charge/ledger-watch.ts";
import type { DeviceFigures, Engine, EngineStats } from "../../engine/engine.ts";
import { appOf } from "../../http/app.ts";
import { NO_BODY } from "../../http/body-rules.ts";
import type { HttpDeps, Ingress } from "../../http/deps.ts";
import { NO_KEY, type Reply, route } from "../../http/route.ts";
import type { Admission } from "../../robot/admission.ts";
import { ROBOT_ANSWERS } from "../../robot/errors.ts";
import type { Forecast } from "../../robot/forecast.ts";
import type { SessionTable } from "../../robot/session/table.ts";
import type { Sockets } from "../../robot/socket/sockets.ts";
import { Metrics } from "../../std/metrics.ts";

/**
 * Every time that matters is the bound of a bucket: 1 and 3 ms (budget on a socket, p50 and p99), 4 and 8 ms (over HTTP),
 * 33 ms (a period at 30 Hz), 400 ms (motors without rows are damped) and 10 s (`chunk_seconds`).
 */
const START_BUCKETS_MS = [
  0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 12, 20, 33, 50, 100, 200, 400, 1_000, 2_000, 5_000, 10_000,
] as const;

/** What the service counts while it runs. */
export function serviceMetrics() {
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

/** What is measured. */
export interface OpsDeps {
  /** What the service counts while it runs. */
  readonly metrics: Metrics;
  readonly sessions: Pick<SessionTable, "size">;
  readonly sockets: Pick<Sockets, "size">;
  readonly ingress: Pick<Ingress, "bytes">;
  readonly admission: Pick<Admission, "held" | "waiting">;
  readonly forecast: Pick<Forecast, "shed">;
  readonly ledger: Pick<LedgerWatch, "lostTransfers" | "lostAmount">;
}

export function opsApp(http: HttpDeps, deps: OpsDeps, engine: () => Pick<Engine, "stats" | "devices"> | undefined) {
  const metricsRoute = route({
    method: "GET",
    path: "/metrics",
    name: "ops",
    key: NO_KEY,
    body: NO_BODY,
    handle: () => metrics(deps, engine()),
  });
  return appOf(http, [{ tag: "Service", answers: ROBOT_ANSWERS, routes: [metricsRoute] }]);
}

async function metrics(service: OpsDeps, engine: Pick<Engine, "stats" | "devices"> | undefined): Promise<Reply> {
  const now = new Metrics();
  now.reading("gauge", "tendon_sessions", "Live robot sessions.", service.sessions.size);
  now.reading("gauge", "tendon_sockets", "WebSocket connections.", service.sockets.size);
  now.reading("gauge", "tendon_ingress_bytes", "Request bodies in memory.", service.ingress.bytes);
  const { held, waiting } = service.admission;
  now.reading("gauge", "tendon_admission_held", "Observations that hold frame and inference permits.", held);
  now.reading("gauge", "tendon_admission_waiting", "Observations that wait for permits.", waiting);
  const { shed } = service.forecast;
  now.reading(
    "total",
    "tendon_shed_total",
    "Observations refused at once: they would have been answered too late.",
    shed,
  );
  const { lostTransfers, lostAmount } = service.ledger;
  const lost = "that the database had confirmed and lost; the log names them.";
  now.reading("total", "tendon_ledger_lost_total", `Transfers of the ledger ${lost}`, lostTransfers);
  now.reading("total", "tendon_ledger_lost_usd_total", `US dollars of the transfers ${lost}`, Number(lostAmount) / 1e9);
  if (engine) {
    const [stats, devices] = [engine.stats(), engine.devices()];
    for (const [name, type, help] of ENGINE) {
      now.reading(type, `tendon_engine_${name}${type === "total" ? "_total" : ""}`, help, stats[name]);
    }
    const parking = "Milliseconds that replicas spent on parking and bringing back.";
    now.reading("total", "tendon_engine_parking_ms_total", parking, stats.parking_us / 1000);
    for (const [name, help, read] of DEVICE) {
      now.readings(
        `tendon_device_${name}`,
        help,
        "device",
        devices.map((figures) => [figures.device, read(figures)]),
      );
    }
  }
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  return { status: 200, body: (await service.metrics.text()) + (await now.text()), headers };
}

/** What the engine counts by itself. */
const ENGINE: readonly (readonly [keyof EngineStats, "gauge" | "total", help: string])[] = [
  ["frames_free", "gauge", "Free frame slots."],
  ["chunks_free", "gauge", "Free result slots."],
  ["slots_held", "gauge", "Session slots whose memory holds something."],
  ["memory_bytes_held", "gauge", "Bytes that episode memories hold."],
  ["slots_parked", "gauge", "Of the session slots, those whose memory is parked in host memory."],
  ["parked_bytes_held", "gauge", "Bytes of host memory that parked sessions take."],
  ["sessions_parked", "total", "Times that a session was parked."],
  ["sessions_brought_back", "total", "Times that a parked session was brought back."],
  ["tensor_bytes", "gauge", "Tensor memory."],
  ["locked_bytes", "gauge", "Tensor memory that is page-locked."],
  ["allocations", "total", "Heap allocations of the native library."],
  ["frames_decoded", "total", "Decoded frames."],
  ["frames_refused", "total", "Frames that no decoder could read."],
  ["chunks_run", "total", "Chunks computed."],
  ["chunks_failed", "total", "Inferences that failed."],
  ["chunks_cancelled", "total", "Inferences that were cancelled."],
  ["panics", "total", "Panics of native code that were caught, each at the cost of a request."],
  ["replicas", "gauge", "Replicas of all models."],
  ["replicas_out", "gauge", "Of these, those that take no more work; /readyz says why."],
  ["values_clamped", "total", "Action values outside their column's range."],
];

/** What each device holds. */
const DEVICE: readonly (readonly [name: string, help: string, read: (figures: DeviceFigures) => number])[] = [
  [
    "takes_work",
    "1 while it takes new sessions; 0 while it is drained, and from the time on that it is drained or lost.",
    ({ health }) => Number(health === "ready"),
  ],
  ["replicas", "Replicas there, of all models.", ({ replicas }) => replicas],
  ["replicas_out", "Of these, those that take no more work.", ({ replicasOut }) => replicasOut],
  ["inferences", "Inferences that are computed now.", ({ inferences }) => inferences],
  ["slots", "Session slots.", ({ slots }) => slots],
  ["slots_held", "Session slots whose memory holds something.", ({ slotsHeld }) => slotsHeld],
  ["frames_waiting", "Frames that wait for a decoder.", ({ framesWaiting }) => framesWaiting],
];
