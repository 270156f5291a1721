/**
 * `tendon bench runs`: how fast do files of a robot's run come into run storage, durable and with their digests, and what do they cost?
 *
 * Files of one size by PUT, one at a time and four at once, each size against a fresh service. Outside of the window: making the bytes,
 * and the first files of each service.
 */
import type { Service } from "../../client/http.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { Histogram } from "../histogram.ts";
import { type ProcessorTime, processorTime, since } from "../process.ts";
import { type BenchTarget, type Measurement, measureCases } from "../target.ts";
import { randomBytes } from "./bytes.ts";

/** A line of a log, a camera's frame many times over, a piece of video. */
const FILE_BYTES = [4_096, 1_048_576, 16_777_216];
const AT_ONCE = [1, 4];
const WARMUP_FILES = 5;

export interface RunsMeasurement extends Measurement {
  readonly fileBytes: number;
  readonly atOnce: number;
  readonly files: number;
  readonly seconds: number;
  /** Of each file: from handing it to HTTP until it is answered, durable. */
  readonly latency: Histogram;
  /** Of the service's process; undefined for a service that was already running. */
  readonly processor: ProcessorTime | undefined;
}

export async function runRunsSuite(
  plan: BenchTarget & { readonly files: number; readonly fileBytes?: readonly number[] },
): Promise<RunsMeasurement[] | Problem> {
  const { files, fileBytes = FILE_BYTES } = plan;
  const cases = fileBytes.flatMap((bytes) =>
    AT_ONCE.map((atOnce) => ({ bytes, atOnce, told: `${files} files of ${bytes} bytes, ${atOnce} at once` })),
  );
  const measured = await measureCases(plan, cases, async ({ service, pid }, { bytes, atOnce }) => {
    const content = randomBytes(bytes);
    const warm = await putFiles(service, "warm", content, WARMUP_FILES, atOnce);
    if (warm instanceof Problem) return warm;
    const before = pid === undefined ? undefined : await processorTime(pid);
    const beganMs = systemClock.monotonicMs();
    const latency = await putFiles(service, "measured", content, files, atOnce);
    if (latency instanceof Problem) return latency;
    const seconds = (systemClock.monotonicMs() - beganMs) / 1000;
    const processor = pid === undefined || before === undefined ? undefined : since(before, await processorTime(pid));
    return { robots: 0, reference: false, fileBytes: bytes, atOnce, files, seconds, latency, processor };
  });
  if (measured instanceof Problem) return measured;
  // No model takes part.
  return measured.map((one) => ({ ...one, model: "run storage", device: "a folder of this machine" }));
}

async function putFiles(
  { url, apiKey }: Service,
  name: string,
  body: Uint8Array<ArrayBuffer>,
  count: number,
  atOnce: number,
): Promise<Histogram | Problem> {
  const run = `${url}/v1/robot/runs/bench/${name}-${systemClock.unixMs()}`;
  const headers = { authorization: `Bearer ${apiKey}` };
  const latency = new Histogram();
  let next = 0;
  let problem: Problem | undefined;
  const work = async (): Promise<void> => {
    while (next < count && problem === undefined) {
      const number = next;
      next += 1;
      const sentMs = systemClock.monotonicMs();
      try {
        const response = await fetch(`${run}/files/file-${number}`, { method: "PUT", headers, body });
        const text = await response.text();
        if (!response.ok) problem ??= new Problem(`a file was answered ${response.status}: ${text.slice(0, 200)}`);
        latency.record(systemClock.monotonicMs() - sentMs);
      } catch (error) {
        problem ??= new Problem(`a file was not answered: ${(error as Error).message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return problem ?? latency;
}
