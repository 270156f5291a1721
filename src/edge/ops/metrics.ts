/** The operations listener: `GET /metrics` in Prometheus text form. */
import type { EngineStats } from "../../engine/engine.ts";
import { ROBOT_ANSWERS } from "../../error/robot.ts";
import type { Admission } from "../../robot/admission.ts";
import type { SessionTable } from "../../robot/session/table.ts";
import { type Counter, exposition, type Family, type Recent } from "../../std/metrics.ts";
import { appOf } from "../app.ts";
import { NO_BODY } from "../http/body-rules.ts";
import type { HttpDeps } from "../http/deps.ts";
import type { Ingress } from "../http/ingress.ts";
import { NO_KEY } from "../http/principal.ts";
import type { Reply } from "../http/reply.ts";
import { route } from "../http/route.ts";
import type { Sockets } from "../robot-socket/sockets.ts";

/** What is measured. */
export interface OpsDeps {
  readonly requests: Counter;
  /** From an observation's arrival to the model's start, milliseconds. */
  readonly starts: { readonly chat: Recent; readonly episode: Recent };
  readonly sessions: Pick<SessionTable, "size">;
  readonly sockets: Pick<Sockets, "size">;
  readonly ingress: Pick<Ingress, "bytes">;
  readonly admission: Pick<Admission, "held" | "waiting">;
}

export function opsApp(http: HttpDeps, deps: OpsDeps, stats: () => EngineStats | undefined) {
  const metricsRoute = route({
    method: "GET",
    path: "/metrics",
    name: "ops",
    key: NO_KEY,
    body: NO_BODY,
    handle: async () => metrics(deps, stats()),
  });
  return appOf(http, [{ tag: "Service", answers: ROBOT_ANSWERS, routes: [metricsRoute] }]);
}

function metrics(service: OpsDeps, stats: EngineStats | undefined): Reply {
  const families: Family[] = [
    {
      name: "tendon_requests_total",
      help: "Answered requests.",
      type: "counter",
      samples: service.requests.samples(),
    },
    {
      name: "tendon_start_ms",
      help: "From an observation's arrival (over HTTP with its first byte) to the model's start, the last 1024 of each route.",
      type: "summary",
      samples: [
        ...service.starts.chat.samples({ route: "chat" }),
        ...service.starts.episode.samples({ route: "episode" }),
      ],
    },
    gauge("tendon_sessions", "Live robot sessions.", service.sessions.size),
    gauge("tendon_sockets", "WebSocket connections.", service.sockets.size),
    gauge("tendon_ingress_bytes", "Request bodies in memory.", service.ingress.bytes),
    gauge("tendon_admission_held", "Observations that hold frame and run slots.", service.admission.held),
    gauge("tendon_admission_waiting", "Observations that wait for slots.", service.admission.waiting),
    ...(stats ? engineFamilies(stats) : []),
  ];
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  return { status: 200, body: exposition(families), headers };
}

function engineFamilies(stats: EngineStats): Family[] {
  return [
    gauge("tendon_engine_frames_free", "Free frame slots.", stats.framesFree),
    gauge("tendon_engine_chunks_free", "Free run slots.", stats.chunksFree),
    gauge("tendon_engine_slots_held", "Session slots whose memory holds something.", stats.slotsHeld),
    gauge("tendon_engine_memory_bytes_held", "Bytes that episode memories hold.", stats.memoryBytesHeld),
    gauge("tendon_engine_tensor_bytes", "Tensor memory.", stats.tensorBytes),
    gauge("tendon_engine_locked_bytes", "Tensor memory that is page-locked.", stats.lockedBytes),
    counter("tendon_engine_allocations_total", "Heap allocations of the native library.", stats.allocations),
    counter("tendon_engine_frames_decoded_total", "Decoded frames.", stats.framesDecoded),
    counter("tendon_engine_frames_refused_total", "Frames that no decoder could read.", stats.framesRefused),
    counter("tendon_engine_chunks_run_total", "Chunks computed.", stats.chunksRun),
    counter("tendon_engine_chunks_failed_total", "Runs that failed.", stats.chunksFailed),
    counter("tendon_engine_chunks_cancelled_total", "Runs that were cancelled.", stats.chunksCancelled),
    counter("tendon_engine_values_clamped_total", "Action values outside their column's range.", stats.valuesClamped),
  ];
}

function gauge(name: string, help: string, value: number): Family {
  return { name, help, type: "gauge", samples: [{ value }] };
}

function counter(name: string, help: string, value: number): Family {
  return { name, help, type: "counter", samples: [{ value }] };
}
