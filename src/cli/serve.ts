/** `tendon serve`: puts the service together, says when it is ready, and takes it down in order. */

import { availableParallelism } from "node:os";
import { DEV_EMAIL, type DevAccount, devAccount, saveDevCredentials } from "../account/dev.ts";
import { DeviceLogins } from "../account/device-login.ts";
import { Keys } from "../account/keys.ts";
import { People } from "../account/people.ts";
import { REFERENCE_WARNING } from "../bundle/describe.ts";
import { readBundles, readShipped } from "../bundle/read.ts";
import { Charges } from "../charge/charges.ts";
import { expireHolds, forgetUsage } from "../charge/upkeep.ts";
import { DEFAULTS, type ServeConfig, serveConfig } from "../config/config.ts";
import { publicApp } from "../edge/app.ts";
import { Ingress } from "../edge/http/ingress.ts";
import { type Listener, listen } from "../edge/http/listen.ts";
import { opsApp } from "../edge/ops/metrics.ts";
import { Sockets } from "../edge/robot-socket/sockets.ts";
import type { Service } from "../edge/service.ts";
import type { Engine } from "../engine/engine.ts";
import { openEngine } from "../engine/native.ts";
import { EXIT, Problem } from "../error/problem.ts";
import { LIMITS } from "../limits.ts";
import { Admission } from "../robot/admission.ts";
import { Catalog } from "../robot/catalog.ts";
import { Observations } from "../robot/replay.ts";
import { forgetChunks } from "../robot/retention.ts";
import { SessionTable } from "../robot/session/table.ts";
import type { Store } from "../service/domains.ts";
import { loadModels, planModels } from "../service/models.ts";
import { openStore } from "../service/store.ts";
import { systemClock } from "../std/clock.ts";
import { Lifecycle } from "../std/lifecycle.ts";
import { type Log, makeLog, standardError } from "../std/log.ts";
import { Counter, Recent } from "../std/metrics.ts";
import { StoreDown } from "../store/store.ts";
import type { Command, Given } from "./command.ts";
import { print, printJson } from "./print.ts";

export const serve: Command = {
  name: "serve",
  summary: "Serve robot models over HTTP and WebSocket.",
  flags: {
    host: { value: "HOST", about: `Address to listen on (default ${DEFAULTS.host}; TENDON_HOST).` },
    port: { value: "N", about: `Port to listen on, 0 for a free one (default ${DEFAULTS.port}; TENDON_PORT).` },
    data: { value: "DIR", about: "Data folder (default $XDG_DATA_HOME/tendon; TENDON_DATA)." },
    models: { value: "DIR", about: "Folder of model bundles (default: those that ship; TENDON_MODELS)." },
    config: { value: "FILE", about: "Configuration (default $XDG_CONFIG_HOME/tendon/tendon.toml; TENDON_CONFIG)." },
    dev: { about: "For one person: makes an account and a key once, prints them, allows reference bundles." },
    json: { about: "One JSON object per line on standard output; the first says that the service is ready." },
  },
  run: (given) => serveWith(given, openStore),
};

/** `serve` on the store that `open` opens; a measurement gives it one of its own. */
export async function serveWith(given: Given, open: typeof openStore): Promise<number | Problem> {
  const config = await serveConfig({
    host: given.text("host"),
    port: given.text("port"),
    data: given.text("data"),
    models: given.text("models"),
    config: given.text("config"),
    dev: given.on("dev"),
    json: given.on("json"),
  });
  if (config instanceof Problem) return config;
  // From here on a signal ends the service in order, also while it still loads.
  const stopped = stopSignal();
  // Another node may bring the schema up to date for an hour. What an opening has begun ends with the process: all or nothing.
  const store = await Promise.race([open(config, "serve"), stopped]);
  if (store === "stopped") return EXIT.done;
  if (store instanceof Problem) return store;
  const running = new Running(config, store);
  try {
    const outcome = await Promise.race([running.start(), stopped]);
    if (outcome instanceof Problem) return outcome;
    await stopped;
    return EXIT.done;
  } finally {
    await running.stop();
  }
}

/** Resolves at the first SIGTERM or SIGINT; the time for shutdown is bounded anyway. */
function stopSignal(): Promise<"stopped"> {
  return new Promise((resolve) => {
    // Later signals do nothing: Ctrl-C often comes twice, and what runs shall be answered.
    process.on("SIGTERM", () => resolve("stopped"));
    process.on("SIGINT", () => resolve("stopped"));
  });
}

/** Everything that is open, in the order in which it was opened. */
class Running {
  private readonly log: Log;
  private readonly service: Service;
  private readonly listeners: Listener[] = [];
  private readonly timers: readonly (() => void)[];
  private engine: Engine | undefined;

  constructor(
    private readonly config: ServeConfig,
    private readonly store: Store,
  ) {
    const clock = systemClock;
    this.log = makeLog({ clock, json: config.json, write: standardError });
    const sessions = new SessionTable({ clock, store: store.robot });
    const keys = new Keys(store.accounts, clock);
    const people = new People({
      store,
      clock,
      signUpOpen: config.signup === "open",
      ...(config.dev ? { operatorEmail: DEV_EMAIL } : {}),
    });
    this.timers = [
      clock.every(LIMITS.sweepMs, () => sessions.sweep()),
      clock.every(LIMITS.keysAskMs, () => void keys.refresh()),
      clock.every(LIMITS.keysFlushMs, () => void keys.flush()),
      clock.every(LIMITS.holdsExpireMs, () => void expireHolds(store.charges, clock, this.log)),
      clock.every(LIMITS.forgetMs, () => void this.forget()),
    ];
    const clamped = new Counter();
    this.service = {
      clock,
      log: this.log,
      store,
      keys,
      people,
      devices: new DeviceLogins(store, people, clock),
      charges: new Charges({ store: store.charges, clock, log: this.log, clamped }),
      clamped,
      sessions,
      observations: new Observations(store.robot),
      catalog: new Catalog(),
      lifecycle: new Lifecycle(),
      ingress: new Ingress(),
      admission: new Admission(),
      sockets: new Sockets(),
      drills: config.drills,
      requests: new Counter(),
      starts: { chat: new Recent(), episode: new Recent() },
      chunkMs: config.chunkSeconds * 1000,
    };
  }

  /** Listens early, so that `/healthz` answers while models load; resolves once the service is ready. */
  async start(): Promise<Problem | undefined> {
    const { config, service, store } = this;
    // Before anybody can ask: a model answers as soon as it is warm, and what its runs hold is theirs.
    await expireHolds(store.charges, service.clock, this.log, store.exclusive ? "all" : "overdue");
    if (service.lifecycle.draining) return undefined;
    const main = this.listen(publicApp(service), config.listen);
    if (main instanceof Problem) return main;
    const ops = this.listen(
      opsApp(service, () => this.engine?.stats()),
      config.ops,
    );
    if (ops instanceof Problem) return ops;
    // Side by side: each waits for files.
    const [bundles, engine, dev] = await Promise.all([
      config.modelsDir === undefined ? readShipped() : readBundles(config.modelsDir),
      openEngine({ decodeThreads: Math.min(availableParallelism(), LIMITS.decodeThreadsMax) }),
      config.dev ? this.devAccount(store, main.url) : undefined,
    ]);
    if (!(engine instanceof Problem)) this.engine = engine;
    if (bundles instanceof Problem) return bundles;
    const plan = planModels(bundles, config);
    if (plan instanceof Problem) return plan;
    if (dev instanceof Problem) return dev;
    if (engine instanceof Problem) return engine;
    const failed = await loadModels(engine, plan, service.catalog, this.log, service.lifecycle);
    if (failed || service.lifecycle.draining) return failed;
    // Before it says that it is ready: what is old must not meet the ids of robots that come.
    await Promise.all([this.forget(), service.keys.refresh()]);
    const link = await service.people.operatorLink();
    if (link instanceof StoreDown) return new Problem(`no link for the operator could be made: ${link.reason}`);
    await this.sayReady({ url: main.url, opsUrl: ops.url }, dev, link);
    return undefined;
  }

  /** Readiness off, running requests answered, then everything closed; within `LIMITS.shutdownMs`. */
  async stop(): Promise<void> {
    const { clock, lifecycle } = this.service;
    const overdue = clock.after(LIMITS.shutdownMs - 200, () => {
      this.log.error("shutdown cut short");
      process.exit(EXIT.done);
    });
    const drained = lifecycle.drain();
    this.service.sockets.drain();
    const within = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
    await Promise.race([drained, within(LIMITS.drainMs)]);
    for (const stopTimer of this.timers) stopTimer();
    // Whoever still waits is told now, while connections and engine are there.
    lifecycle.cut();
    await Promise.race([drained, within(LIMITS.flushMs)]);
    const { engine } = this;
    this.engine = undefined;
    await Promise.all(this.listeners.map((listener) => listener.stop()));
    await engine?.close();
    await this.service.keys.flush();
    await this.store.close();
    overdue();
  }

  private listen(app: Parameters<typeof listen>[0], address: Parameters<typeof listen>[1]): Listener | Problem {
    const listener = listen(app, address, this.config.chunkSeconds);
    if (!(listener instanceof Problem)) this.listeners.push(listener);
    return listener;
  }

  /** What is old enough to go. */
  private async forget(): Promise<void> {
    const { store } = this;
    const { clock } = this.service;
    await forgetChunks(store.robot, clock, this.log);
    await forgetUsage(store.charges, clock, this.log, this.config.usageDays);
    await store.people.peopleForget({ now: Math.floor(clock.unixMs() / 1000) });
  }

  private async devAccount(store: Store, url: string): Promise<DevAccount | Problem> {
    const dev = await devAccount(store, this.config.dataDir, this.service.clock);
    if (dev instanceof Problem) return dev;
    const unsaved = await saveDevCredentials(this.config.credentialsPath, dev.key, url);
    // The service works without the file; only the client commands then need TENDON_API_KEY.
    if (unsaved) this.log.error("credentials not saved", { reason: unsaved.message });
    return dev;
  }

  /** `link`: the token of the link that makes the operator's account, as long as nobody can sign in. */
  private async sayReady(
    at: { url: string; opsUrl: string },
    dev: DevAccount | undefined,
    link: string | undefined,
  ): Promise<void> {
    const operatorLink = link === undefined ? undefined : `${at.url}/welcome?token=${link}`;
    const { models, ids } = this.service.catalog;
    const reference = [...models.values()]
      .filter(({ manifest }) => manifest.reference)
      .map(({ manifest }) => manifest.id);
    if (this.config.json) {
      await printJson({
        event: "ready",
        url: at.url,
        ops_url: at.opsUrl,
        models: ids,
        llm: [...this.config.llm.keys()],
        reference,
        ...(dev ? { account: dev.accountId, api_key: dev.key } : {}),
        ...(operatorLink ? { operator_link: operatorLink } : {}),
      });
      return;
    }
    const lines = [
      `tendon serves ${ids.join(", ")}`,
      `  url      ${at.url}`,
      `  metrics  ${at.opsUrl}/metrics`,
      ...(dev ? [`  account  dev@localhost (${dev.accountId})`, `  key      ${dev.key}`] : []),
      ...(operatorLink ? [`  sign in  ${operatorLink} (once, within 24 hours: makes the operator's account)`] : []),
      ...reference.map((id) => `  ${id}: ${REFERENCE_WARNING}`),
    ];
    await print(lines.join("\n"));
  }
}
