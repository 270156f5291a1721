/** The transport alone, with routes of a test: no product behind it. */
import { authenticator } from "../../src/account/authenticate.ts";
import { Keys } from "../../src/account/keys.ts";
import { Unpaid } from "../../src/charge/unpaid.ts";
import { appOf } from "../../src/http/app.ts";
import { Bodies } from "../../src/http/bodies.ts";
import type { HttpDeps } from "../../src/http/deps.ts";
import { Ingress } from "../../src/http/deps.ts";
import { listen } from "../../src/http/listen.ts";
import type { Route } from "../../src/http/route.ts";
import type { Surface } from "../../src/http/surface.ts";
import { LIMITS } from "../../src/limits.ts";
import { serviceMetrics } from "../../src/service/ops/metrics.ts";
import { systemClock } from "../../src/std/clock.ts";
import { type Answers, row, table } from "../../src/std/failure.ts";
import { Lifecycle } from "../../src/std/lifecycle.ts";
import type { Metrics } from "../../src/std/metrics.ts";
import { LOOPBACK, Networks } from "../../src/std/networks.ts";
import { Problem } from "../../src/std/problem.ts";
import { Allowance } from "../../src/std/quota.ts";
import { fakeStore } from "../account/fake-store.ts";
import { addAccount } from "../robot/stage.ts";

/** Failures of a surface that no product has. */
export const FAKE = table({
  body_too_large: row(413, { http: "The body is too large." }),
  body_malformed: row(422, { http: "The body is malformed.", final: true }),
  fake_missing: row(404, { http: "There is no such thing." }),
  fake_unavailable: row(503, { http: "Not now.", retryAfterSeconds: 7 }),
});

const FAKE_ANSWERS: Answers = {
  tooLarge: FAKE.body_too_large,
  malformed: FAKE.body_malformed,
  unavailable: FAKE.fake_unavailable,
};

export function fakeSurface(routes: readonly Route[]): Surface {
  return { tag: "Fake", answers: FAKE_ANSWERS, routes };
}

export interface Kit {
  readonly deps: HttpDeps;
  readonly key: string;
  readonly metrics: Metrics;
  readonly logged: { event: string; facts: Record<string, unknown> }[];
}

interface Options extends Partial<Pick<HttpDeps, "clock" | "ingress">> {
  readonly unpaidSeconds?: number;
}

export async function kit(options: Options = {}): Promise<Kit> {
  const { clock = systemClock, ingress = new Ingress(), unpaidSeconds = LIMITS.unpaidSecondsDefault } = options;
  const store = fakeStore();
  const key = await addAccount(store, "acct_1");
  const logged: Kit["logged"] = [];
  const note = (event: string, facts: object = {}) => {
    logged.push({ event, facts: { ...facts } });
  };
  const { metrics, requests } = serviceMetrics();
  const deps: HttpDeps = {
    clock,
    log: { info: note, error: note },
    lifecycle: new Lifecycle(),
    ingress,
    bodies: new Bodies(),
    requests,
    authenticate: authenticator(
      new Keys(store.accounts, clock),
      new Allowance(LIMITS.unknownKeysMax, LIMITS.unknownKeysSeconds * 1_000, clock),
      () => false,
    ),
    unpaid: new Unpaid(unpaidSeconds, clock),
    proxies: new Networks(LOOPBACK),
  };
  return { deps, key, logged, metrics };
}

/** The routes on a port of their own. */
export function served({ deps }: Kit, routes: readonly Route[]): AsyncDisposable & { url: string; port: number } {
  const listener = listen(appOf(deps, [fakeSurface(routes)]), { host: "127.0.0.1", port: 0 });
  if (listener instanceof Problem) throw new Error(listener.message);
  const port = Number(new URL(listener.url).port);
  return { url: listener.url, port, [Symbol.asyncDispose]: () => listener.stop() };
}
