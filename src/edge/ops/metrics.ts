/** The operations listener: `GET /metrics` in Prometheus text form. */
import { Elysia } from "elysia";
import type { EngineStats } from "../../engine/engine.ts";
import { exposition, type Family } from "../../std/metrics.ts";
import { unmatched } from "../app.ts";
import { answer, type Reply } from "../http/answer.ts";
import type { Service } from "../service.ts";

export function opsApp(service: Service, stats: () => EngineStats | undefined) {
  return new Elysia({ strictPath: true })
    .onError(({ code, error }) => answer(service, "ops", () => unmatched(code, error)))
    .get("/metrics", () => answer(service, "ops", () => metrics(service, stats())));
}

async function metrics(service: Service, stats: EngineStats | undefined): Promise<Reply> {
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
    {
      name: "tendon_charges_clamped_total",
      help: "Charges whose price was above what was held; they cost what was held.",
      type: "counter",
      samples: service.clamped.samples(),
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
