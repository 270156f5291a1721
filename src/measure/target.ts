/** What the suites of `tendon bench` measure: fresh services or one that serves already, and what robots send to it. */
import type { Service } from "../client/http.ts";
import { signedIn } from "../client/sign-in.ts";
import { Problem } from "../std/problem.ts";
import { startChild } from "./child.ts";
import { SAMPLE_MODEL } from "./sample/observation.ts";

/** The part of a plan that all suites have. */
export interface BenchTarget {
  /** Each number of robots is one measurement, on each device. */
  readonly robots: readonly number[];
  readonly devices: readonly string[];
  readonly url?: string | undefined;
  readonly models?: string | undefined;
  /** Absent, the sample's. */
  readonly model?: string | undefined;
  /** Called before each measurement with its name. */
  readonly progress?: (line: string) => Promise<void>;
}

/** What every suite says of a measurement. */
export interface Measurement {
  readonly model: string;
  /** `echo`, `cpu`, or `as configured` for a service that was already running. */
  readonly device: string;
  readonly robots: number;
  /** The weights are random numbers, or there is no model. */
  readonly reference: boolean;
}

/** A measurement of each number of robots on each device, one after the other. */
export async function measureEach<T extends Pick<Measurement, "reference">>(
  target: BenchTarget,
  told: string,
  work: (service: Service, robots: number) => Promise<T | Problem>,
): Promise<(T & Measurement)[] | Problem> {
  const cases = target.robots.map((robots) => ({ robots, told: `robots ${robots}, ${told}` }));
  return await measureCases(target, cases, async (service, { robots }) => {
    const done = await work(service, robots);
    return done instanceof Problem ? done : { ...done, robots };
  });
}

/** A measurement of each case on each device, one after the other, each against a fresh process. `told`: what it is, for people. */
export async function measureCases<
  C extends { readonly told: string },
  T extends Omit<Measurement, "model" | "device">,
>(
  target: BenchTarget,
  cases: readonly C[],
  work: (service: Service, one: C) => Promise<T | Problem>,
): Promise<(T & Measurement)[] | Problem> {
  const measurements: (T & Measurement)[] = [];
  for (const device of target.url === undefined ? target.devices : ["as configured"]) {
    for (const one of cases) {
      await target.progress?.(`measuring: device ${device}, ${one.told}`);
      const done = await withService(target, device, (service) => work(service, one));
      if (done instanceof Problem) return done;
      measurements.push({ ...done, model: target.model ?? SAMPLE_MODEL, device });
    }
  }
  return measurements;
}

/** Against a fresh process, unless the target names a service. */
async function withService<T>(
  target: BenchTarget,
  device: string,
  work: (service: Service) => Promise<T | Problem>,
): Promise<T | Problem> {
  if (target.url !== undefined) {
    const service = await signedIn(target.url);
    return service instanceof Problem ? service : work(service);
  }
  const child = await startChild({ device, modelsDir: target.models, model: target.model });
  if (child instanceof Problem) return child;
  try {
    const done = await work(child.service);
    return done instanceof Problem ? await child.explain(done) : done;
  } finally {
    await child.stop();
  }
}
