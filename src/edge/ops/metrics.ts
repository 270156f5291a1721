/** The operations listener: `GET /metrics` in Prometheus text form. */
import { Elysia } from "elysia";
import type { EngineStats } from "../../engine/engine.ts";
import { Metrics } from "../../std/metrics.ts";
import { unmatched } from "../app.ts";
import { answer, type Reply } from "../http/answer.ts";
import type { Service } from "../service.ts";

export function opsApp(service: Service, stats: () => EngineStats | undefined) {
  return new Elysia({ strictPath: true })
    .onError(({ code, error }) => answer(service, "ops", () => unmatched(code, error)))
    .get("/metrics", () => answer(service, "ops", () => metrics(service, stats())));
}

async function metrics(service: Service, stats: EngineStats | undefined): Promise<Reply> {
  const now = new Metrics();
  now.reading("gauge", "tendon_sessions", "Live robot sessions.", service.sessions.size);
  now.reading("gauge", "tendon_sockets", "WebSocket connections.", service.sockets.size);
  now.reading("gauge", "tendon_ingress_bytes", "Request bodies in memory.", service.ingress.bytes);
  const { held, waiting } = service.admission;
  now.reading("gauge", "tendon_admission_held", "Observations that hold frame and run slots.", held);
  now.reading("gauge", "tendon_admission_waiting", "Observations that wait for slots.", waiting);
  if (stats) {
    for (const [field, type, name, help] of ENGINE) now.reading(type, `tendon_engine_${name}`, help, stats[field]);
  }
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  return { status: 200, body: (await service.metrics.text()) + (await now.text()), headers };
}

/** What the engine counts by itself. */
const ENGINE: readonly (readonly [keyof EngineStats, "gauge" | "total", name: string, help: string])[] = [
  ["framesFree", "gauge", "frames_free", "Free frame slots."],
  ["chunksFree", "gauge", "chunks_free", "Free run slots."],
  ["slotsHeld", "gauge", "slots_held", "Session slots whose memory holds something."],
  ["memoryBytesHeld", "gauge", "memory_bytes_held", "Bytes that episode memories hold."],
  ["tensorBytes", "gauge", "tensor_bytes", "Tensor memory."],
  ["lockedBytes", "gauge", "locked_bytes", "Tensor memory that is page-locked."],
  ["allocations", "total", "allocations_total", "Heap allocations of the native library."],
  ["framesDecoded", "total", "frames_decoded_total", "Decoded frames."],
  ["framesRefused", "total", "frames_refused_total", "Frames that no decoder could read."],
  ["chunksRun", "total", "chunks_run_total", "Chunks computed."],
  ["chunksFailed", "total", "chunks_failed_total", "Runs that failed."],
  ["chunksCancelled", "total", "chunks_cancelled_total", "Runs that were cancelled."],
  ["valuesClamped", "total", "values_clamped_total", "Action values outside their column's range."],
];
