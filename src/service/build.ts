/**
 * The composition root: from ports (time, log, store) and settings to the parts of a service and its surfaces. `serve`, the
 * tests, the simulation and the bench all start here, so that what they drive is put together in one way.
 */
import { authenticator } from "../account/authenticate.ts";
import { DeviceLogins } from "../account/device-login.ts";
import { Identities } from "../account/identities.ts";
import { Keys } from "../account/keys.ts";
import { oauth } from "../account/oauth/oauth.ts";
import { OidcProvider } from "../account/oidc.ts";
import { pages } from "../account/pages/routes.ts";
import { People } from "../account/people.ts";
import { Charges } from "../charge/charges.ts";
import { LedgerWatch } from "../charge/ledger-watch.ts";
import { Unpaid } from "../charge/unpaid.ts";
import type { OidcConfig } from "../config/oidc.ts";
import type { Drills } from "../drill.ts";
import { Bodies } from "../http/bodies.ts";
import type { HttpDeps } from "../http/deps.ts";
import { Ingress } from "../http/deps.ts";
import type { Surface } from "../http/surface.ts";
import { LIMITS } from "../limits.ts";
import type { LlmDeps } from "../llm/deps.ts";
import { Jobs } from "../llm/jobs.ts";
import { isLlmId, type LlmId } from "../llm/models.ts";
import { Owners } from "../llm/owners.ts";
import type { Provider } from "../llm/provider/provider.ts";
import { Watchers } from "../llm/watchers.ts";
import { Admission, type AdmissionLimits } from "../robot/admission.ts";
import { Catalog } from "../robot/catalog.ts";
import type { RobotDeps } from "../robot/command.ts";
import { Forecast } from "../robot/forecast.ts";
import { Replays } from "../robot/replay.ts";
import { SessionTable } from "../robot/session/table.ts";
import { HalfMessages } from "../robot/socket/half-messages.ts";
import { type RobotSocketDeps, Sockets } from "../robot/socket/sockets.ts";
import { Blobs } from "../runs/blob/blobs.ts";
import { type RunDeps, RunPermits } from "../runs/gate.ts";
import { Meter } from "../runs/meter.ts";
import { Ownership } from "../runs/ownership.ts";
import { runPages } from "../runs/pages/runs.ts";
import type { RunBounds } from "../runs/store/records.ts";
import { takeOver } from "../runs/sweep.ts";
import type { Clock } from "../std/clock.ts";
import { makeId } from "../std/ids.ts";
import { Lifecycle } from "../std/lifecycle.ts";
import type { Log } from "../std/log.ts";
import { LOOPBACK, Networks } from "../std/networks.ts";
import { Allowance, Permits } from "../std/quota.ts";
import { ServiceClock } from "../std/seen-clock.ts";
import type { Store } from "./domains.ts";
import { health } from "./ops/health.ts";
import { type OpsDeps, serviceMetrics } from "./ops/metrics.ts";
import * as products from "./products.ts";

/** The parts of the world that a service uses. */
export interface Ports {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Omit<Store, "exclusive" | "close">;
  /** Undefined: no bytes of runs are kept, and their routes say so. */
  readonly blobs?: Blobs;
}

export interface Settings {
  /** The time for one chunk, admission to answer, milliseconds. */
  readonly chunkMs: number;
  readonly signUpOpen: boolean;
  /** Processor time that an account's unpaid work may take within a minute; undefined: that of limits.ts. */
  readonly unpaidSeconds?: number;
  /** Networks of proxies whose `X-Forwarded-*` is believed; undefined: this machine's. */
  readonly proxies?: Networks;
  /** The account that the operator's link leads to; undefined: the operator chooses one. */
  readonly operatorEmail?: string;
  readonly drills: Drills;
  /** The provider with which people sign in. */
  readonly oidc?: OidcConfig | undefined;
  /** The providers of the language models that are configured. */
  readonly providers?: ReadonlyMap<LlmId, Provider>;
  /** Instead of those of limits.ts. */
  readonly bounds?: {
    readonly admission?: AdmissionLimits;
    readonly sessionsMax?: number;
    readonly ingressBytesMax?: number;
    readonly socketSilentSeconds?: number;
    readonly halfMessages?: { readonly messageMs: number; readonly bytesMax: number };
    readonly runs?: Partial<RunBounds>;
  };
}

export type Service = ReturnType<typeof build>;

const RUN_BOUNDS: RunBounds = {
  runBytesMax: LIMITS.runBytesMax,
  runFilesMax: LIMITS.runFilesMax,
  runUploadsMax: LIMITS.runUploadsMax,
  accountBytesMax: LIMITS.runsAccountBytesMax,
  accountRunsMax: LIMITS.accountRunsMax,
};

export function build(settings: Settings, { clock: wall, log, store, blobs = new Blobs(undefined) }: Ports) {
  const clock = new ServiceClock(wall);
  const { drills, chunkMs, bounds = {} } = settings;
  const owner = makeId("node_", clock);
  const metrics = serviceMetrics();
  /** The parts that all surfaces share. */
  const core = {
    ...metrics,
    clock,
    log,
    drills,
    lifecycle: new Lifecycle(),
    keys: new Keys(store.accounts, clock),
    charges: new Charges({ store: store.charges, clock, log, clamped: metrics.clamped }),
  };
  const { lifecycle, keys, charges, requests, starts } = core;
  const ingress = new Ingress(bounds.ingressBytesMax);
  const unpaid = new Unpaid(settings.unpaidSeconds ?? LIMITS.unpaidSecondsDefault, clock);
  const { proxies = new Networks(LOOPBACK) } = settings;
  const unknownKeys = new Allowance(LIMITS.unknownKeysMax, LIMITS.unknownKeysSeconds * 1_000, clock);
  const authenticate = authenticator(keys, unknownKeys, () => drills.strikes("auth_unavailable"));
  const shared = { clock, log, lifecycle, unpaid };
  const http: HttpDeps = { ...shared, ingress, bodies: new Bodies(), requests, proxies, authenticate };
  const catalog = new Catalog();
  const robot: RobotDeps = {
    ...shared,
    drills,
    charges,
    chunkMs,
    catalog,
    sessions: new SessionTable(clock, store.robot, bounds.sessionsMax),
    replays: new Replays(store.robot),
    forecast: new Forecast(clock),
    admission: new Admission(bounds.admission, () => catalog.models.size),
    records: store.robot,
  };
  const halves = new HalfMessages(clock, bounds.halfMessages?.messageMs, bounds.halfMessages?.bytesMax);
  const { socketSilentSeconds: silentSeconds = LIMITS.socketSilentSeconds } = bounds;
  const socket: RobotSocketDeps = { ...http, ...robot, starts, sockets: new Sockets(), halves, silentSeconds };
  const llmDeps: LlmDeps = {
    ...shared,
    drills,
    charges,
    store: store.llm,
    providers: settings.providers ?? new Map(),
    owner,
    places: new Permits(LIMITS.llmLiveMax, LIMITS.accountLlmLiveMax),
    readers: new Permits(LIMITS.llmReadersMax, LIMITS.accountLlmReadersMax),
    running: new Map(),
    watchers: new Watchers(clock, lifecycle.over),
    ownerEnded: (ended) => takeOver(runDeps, ended),
    kick: () => jobs.kick(),
    calls: metrics.calls,
    estimates: metrics.estimates,
  };
  const jobs = new Jobs(llmDeps);
  const ownership = new Ownership({ store: store.runs, blobs, clock }, log);
  const runDeps: RunDeps = {
    clock,
    log,
    drills,
    store: store.runs,
    blobs,
    ownership,
    owner,
    bounds: { ...RUN_BOUNDS, ...bounds.runs },
    requests: new RunPermits(LIMITS.runRequests),
    bodies: new RunPermits(LIMITS.runBodies),
    downloads: new RunPermits(LIMITS.runDownloads),
    meter: new Meter(store.runs, clock, log),
    live: new Set(),
  };
  const { signUpOpen, operatorEmail } = settings;
  const peopleOptions = { store, clock, signUpOpen, ...(operatorEmail === undefined ? {} : { operatorEmail }) };
  const people = new People(peopleOptions);
  const identities = new Identities(peopleOptions);
  const oidc = settings.oidc && new OidcProvider(settings.oidc, clock, log);
  const deviceLogins = new DeviceLogins(store, people, clock);
  const tries = new Allowance(LIMITS.oauthTriesMax, LIMITS.oauthSeconds * 1_000, clock);
  const { sessions, admission, forecast } = robot;
  const ledger = new LedgerWatch(log, store);
  const parts = { ...core, store, robot, socket, llm: llmDeps, runs: runDeps };
  return {
    core,
    people,
    identities,
    http,
    robot,
    llm: { deps: llmDeps, jobs, owners: new Owners(llmDeps) },
    runs: runDeps,
    socket,
    ops: {
      metrics: core.metrics,
      sessions,
      admission,
      forecast,
      ingress,
      ledger,
      sockets: socket.sockets,
    } satisfies OpsDeps,
    surfaces: [
      ...Object.values(products).map((surface) => surface(parts)),
      oauth({ clock, store, keys, deviceLogins, tries }),
      pages({ clock, store, keys, people, identities, deviceLogins, isLanguage: isLlmId, ...(oidc && { oidc }) }),
      runPages({ people, runs: runDeps }),
      health({ clock, log, lifecycle, catalog, store, blobs, ownership, ledger }),
    ] satisfies readonly Surface[],
  };
}
