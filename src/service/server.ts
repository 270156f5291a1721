/** A service that listens: started in order (store, listeners, engine, models), and taken down in order within a bound of time. */
import { join } from "node:path";
import { DEV_EMAIL, type DevAccount, devAccount, saveDevCredentials } from "../account/dev.ts";
import { expireHolds } from "../charge/charges.ts";
import type { Address } from "../config/fields.ts";
import type { ServeConfig } from "../config/serve.ts";
import type { Engine } from "../engine/engine.ts";
import { publicApp } from "../http/app.ts";
import { type Certificate, certificateVersion, readCertificate } from "../http/certificate.ts";
import { listenersOf, watchConnections } from "../http/connection-watch.ts";
import { Connections } from "../http/connections.ts";
import { type Listener, listen, listenLocal } from "../http/listen.ts";
import { LIMITS } from "../limits.ts";
import type { LlmId } from "../llm/models.ts";
import type { Provider } from "../llm/provider/provider.ts";
import type { Catalog } from "../robot/catalog.ts";
import { takeOver as takeOverRuns } from "../runs/sweep.ts";
import { sleep, systemClock } from "../std/clock.ts";
import { readText, writePrivate } from "../std/file.ts";
import { makeLog, standardError } from "../std/log.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { StoreDown } from "../store/store.ts";
import { makeBlobs, openBlobs } from "./blobs.ts";
import { build, type Service } from "./build.ts";
import type { Store } from "./domains.ts";
import { discard, loadModels, type PlannedModel, type Preparation } from "./models.ts";
import { controlApp } from "./ops/control.ts";
import { opsApp } from "./ops/metrics.ts";
import { LLM_ADVICE } from "./providers.ts";
import { Renewal } from "./renewal.ts";
import { Replicas } from "./replicas.ts";
import { beginSeenTime, keepSeenTime, Upkeep } from "./upkeep.ts";
import { warmUp } from "./warm-up.ts";

/** The file in the data folder with the name under which a process runs responses and receives files. */
const OWNER_FILE = "owner";

const LOOPBACK_HOST = /^(127\.|::1$|localhost$)/;
const WITHOUT_TLS = "warning: no TLS, keys can be read on the way";
const TLS_ADVICE =
  "TENDON_TLS_CERT and TENDON_TLS_KEY, or a proxy with TLS in front of an address of this machine alone";

/** A service that is ready. */
export interface Ready {
  readonly url: string;
  readonly opsUrl: string;
  readonly catalog: Catalog;
  readonly dev: DevAccount | undefined;
  /** The token of the operator's link, until a person can sign in. */
  readonly linkToken: string | undefined;
}

export class Server {
  private readonly service: Service;
  private readonly upkeep: Upkeep;
  private readonly listeners: Pick<Listener, "stop">[] = [];
  private engine: Engine | undefined;
  private readonly replicas: Replicas;
  /** The exit code, if the shutdown must be cut short. */
  private exit: number = EXIT.done;
  /** The ends of what looks at connections and certificates. */
  private readonly looks: (() => void)[] = [];

  constructor(
    private readonly config: ServeConfig,
    private readonly store: Store,
    private readonly providers: ReadonlyMap<LlmId, Provider>,
    private readonly preparation: Preparation,
    private readonly begun: ReturnType<Preparation["begin"]>,
  ) {
    const clock = systemClock;
    const log = makeLog({ clock, json: config.json, write: standardError });
    const settings = {
      chunkMs: config.chunkSeconds * 1000,
      unpaidSeconds: config.unpaidSeconds,
      signUpOpen: config.signup === "open",
      proxies: config.proxies,
      drills: config.drills,
      oidc: config.oidc,
      providers,
      ...(config.dev ? { operatorEmail: DEV_EMAIL } : {}),
    };
    this.service = build(settings, { clock, log, store, blobs: makeBlobs(config) });
    this.upkeep = new Upkeep(this.service, store, config);
    const { catalog, sessions } = this.service.robot;
    this.replicas = new Replicas({ catalog, sessions, log });
  }

  /** Listens early, so that `/healthz` answers while models load. Undefined if the service was stopped meanwhile. */
  async start(): Promise<Ready | Problem | undefined> {
    const { config, service, store } = this;
    const { core, http, robot } = service;
    // Records that follow have a time.
    const down = await beginSeenTime(core.clock, store.base);
    if (down instanceof StoreDown) {
      const advice = "see that the store can be read and written, then start again";
      return new Problem(`the time that the service has seen cannot be read: ${down.reason}; ${advice}`);
    }
    // Before the first request: what is held then belongs to a process that has ended.
    await expireHolds(store.charges, core.clock, core.log, store.exclusive ? "all" : "overdue");
    await this.takeOver();
    if (core.lifecycle.draining) return undefined;
    const version = config.tls && (await certificateVersion(config.tls));
    const certificate = config.tls && (await readCertificate(config.tls));
    if (certificate instanceof Problem) return certificate;
    const main = this.listen(publicApp(http, service.surfaces), config.listen, certificate);
    if (main instanceof Problem) return main;
    if (config.tls && version !== undefined) this.keepCertificate(new Renewal(config.tls, main, core.log, version));
    else if (!LOOPBACK_HOST.test(config.listen.host))
      core.log.info(WITHOUT_TLS, { host: config.listen.host, expected: TLS_ADVICE });
    const metrics = opsApp(http, service.ops, () => this.reported());
    const ops = this.listen(metrics, config.ops);
    if (ops instanceof Problem) return ops;
    this.listenToOperator();
    // They run in parallel, because each waits for files.
    const [models, engine, , dev, unkept] = await Promise.all([
      this.begun,
      this.preparation.engine,
      // The first request must not wait for it; what is wrong with the library is the engine's problem.
      http.bodies.open(),
      config.dev ? this.devAccount(main.url) : undefined,
      openBlobs(service.runs, config),
      this.watch(main.port),
    ]);
    if (!(engine instanceof Problem)) this.engine = engine;
    if (unkept) return unkept;
    if (models instanceof Problem) return models;
    if (dev instanceof Problem) return dev;
    if (engine instanceof Problem) return engine;
    // The warm-up's own model begins last, so that it cannot take the memory of one that is served.
    const loaded = loadModels(models, robot.catalog, core.log, core.lifecycle, this.replicas);
    const [failed] = await Promise.all([loaded, this.warmUp(engine, models)]);
    if (failed || core.lifecycle.draining) return failed;
    // Before readiness: records whose retention is over must not answer the ids of new requests.
    await Promise.all([this.upkeep.forget(), core.keys.refresh(), core.keys.recall()]);
    if (this.providers.size === 0) {
      // `serve` without --json prints these lines, so that people can copy them.
      const lines = config.json ? { lines: LLM_ADVICE.join("\n") } : {};
      core.log.info("no language model is configured", { answer: "unconfigured", file: config.configPath, ...lines });
    }
    service.llm.jobs.start();
    const linkToken = await service.people.operatorLink();
    if (linkToken instanceof StoreDown) {
      const todo = "start again once the store can be written";
      return new Problem(`no link for the operator could be made: ${linkToken.reason}; ${todo}`);
    }
    return { url: main.url, opsUrl: ops.url, catalog: robot.catalog, dev, linkToken };
  }

  /** Resolves when the service cannot serve any more and has to end, so that its supervisor starts it anew. */
  async broken(): Promise<Problem> {
    await this.replicas.noneLeft;
    this.exit = EXIT.failed;
    const { core, robot } = this.service;
    core.log.error("no replica is left", { models: robot.catalog.ids.join(", "), todo: "start tendon again" });
    const advice = "start tendon again, and check the device if that repeats";
    return new Problem(`no replica of any model is left (each is named above with its reason); ${advice}`);
  }

  /** Readiness off, running requests answered, then everything closed; within `LIMITS.shutdownMs`. */
  async stop(): Promise<void> {
    const { core, socket, http, llm, runs } = this.service;
    const { clock, lifecycle, keys, log } = core;
    const overdue = clock.after(LIMITS.shutdownMs - 200, () => {
      log.error("shutdown cut short");
      process.exit(this.exit);
    });
    const drained = lifecycle.drain();
    socket.sockets.drain();
    await Promise.race([drained, sleep(clock, LIMITS.drainMs)]);
    this.upkeep.stop();
    // Requests that still wait are answered now, while connections and engine are there.
    lifecycle.cut();
    await Promise.race([drained, sleep(clock, LIMITS.flushMs)]);
    this.engine = undefined;
    for (const end of this.looks) end();
    await Promise.all(this.listeners.map((listener) => listener.stop()));
    await Promise.all([discard(this.preparation), http.bodies.close()]);
    await Promise.all([keys.flush(), llm.owners.stop(), runs.meter.flush(), keepSeenTime(clock, this.store.base)]);
    runs.blobs.close();
    await this.store.close();
    overdue();
  }

  /** Ends at once what the process before this one ran: the lock of the data folder says that it has gone. */
  private async takeOver(): Promise<void> {
    const { deps, owners } = this.service.llm;
    // If no other process uses the store, every owner but this one has gone.
    if (this.store.exclusive) {
      await takeOverRuns(this.service.runs, "all");
      return await owners.start(true);
    }
    const path = join(this.config.dataDir, OWNER_FILE);
    const before = await readText(path);
    await takeOverRuns(this.service.runs, before);
    await owners.start(false, before);
    // Last: a process that dies before has run nothing, and the next one still finds who came before.
    await writePrivate(path, deps.owner);
  }

  private async warmUp(engine: Engine, plan: readonly PlannedModel[]): Promise<void> {
    const { core, http } = this.service;
    const lent = { engine, bodies: http.bodies, store: this.store };
    const reason = await warmUp(lent, plan, () => core.lifecycle.draining);
    if (reason !== undefined && !core.lifecycle.draining) core.log.error("not warmed up", { reason });
  }

  private listen(app: Parameters<typeof listen>[0], address: Address, certificate?: Certificate): Listener | Problem {
    const listener = listen(app, address, { answerSeconds: this.config.chunkSeconds, certificate });
    if (!(listener instanceof Problem)) this.listeners.push(listener);
    return listener;
  }

  /** Requests are served without it as well. */
  private listenToOperator(): void {
    const app = controlApp(this.service.http, {
      figures: () => this.reported()?.devices(),
      drain: (device) => {
        const draining = this.replicas.drain(device, {
          // A shutdown ends the sessions as well, and the engine with them.
          drain: (hardware) =>
            this.engine ? this.engine.drain(hardware) : new Problem("the service is shutting down"),
        });
        return draining instanceof Problem ? draining : undefined;
      },
      resume: (device) => this.replicas.resume(device),
    });
    const control = listenLocal(app, this.config.controlPath);
    if (control instanceof Problem) this.service.core.log.error("no control socket", { reason: control.message });
    else this.listeners.push(control);
  }

  /** The engine's own figures, with the devices that are being drained. */
  private reported(): Pick<Engine, "stats" | "devices"> | undefined {
    const { engine, replicas } = this;
    return engine && { stats: () => engine.stats(), devices: () => replicas.devices(engine) };
  }

  private keepCertificate(renewal: Renewal): void {
    const { clock, log } = this.service.core;
    const look = () =>
      renewal.look().catch((error: unknown) => log.error("certificate fault", { stack: String(error) }));
    this.looks.push(clock.every(LIMITS.certificateLookMs, look));
  }

  /** Bounds the connections from here on. Where they cannot be watched, the server's own time-outs must do. */
  private async watch(port: number): Promise<void> {
    const { config, service } = this;
    const { clock, log, lifecycle } = service.core;
    const sockets = await listenersOf(port);
    if (!(sockets instanceof Problem)) sockets.receiveAtMost(LIMITS.receivedBytesMax);
    const watch = await watchConnections(port);
    if (watch instanceof Problem) return log.error("connections are not watched", { reason: watch.message });
    if (lifecycle.draining) return watch.close();
    const { halves } = service.socket;
    const deps = { clock, log, proxies: config.proxies };
    const connections = new Connections(deps, watch, config.connections, halves.meters);
    const look = () => {
      connections.look();
      halves.check();
    };
    this.looks.push(clock.every(LIMITS.connectionsLookMs, look), () => watch.close());
  }

  private async devAccount(url: string): Promise<DevAccount | Problem> {
    const { clock, log } = this.service.core;
    const dev = await devAccount(this.store, this.config.dataDir, clock);
    if (dev instanceof Problem) return dev;
    const unsaved = await saveDevCredentials(this.config.credentialsPath, dev.key, url);
    // The service works without the file; only the client commands then need TENDON_API_KEY.
    if (unsaved) log.error("credentials not saved", { reason: unsaved.message });
    return dev;
  }
}
