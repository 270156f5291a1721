/** The service of one history: a real app, table, store and observations; engine outcomes, commits and time as the seed decides. */
import type { Elysia } from "elysia";
import { DeviceLogins } from "../../src/account/device.ts";
import { keyDigest, keyPublicId, makeKey } from "../../src/account/key.ts";
import { Keys } from "../../src/account/keys.ts";
import { People } from "../../src/account/people.ts";
import { Drills } from "../../src/drill.ts";
import { Admission } from "../../src/edge/admission.ts";
import { publicApp } from "../../src/edge/app.ts";
import { Ingress } from "../../src/edge/body.ts";
import { Catalog, Lifecycle, type Service } from "../../src/edge/service.ts";
import { Sockets } from "../../src/edge/socket/sockets.ts";
import type { Model } from "../../src/engine/engine.ts";
import { LIMITS } from "../../src/limits.ts";
import { Meter } from "../../src/meter/meter.ts";
import { Observations } from "../../src/session/observations.ts";
import { SlotPool } from "../../src/session/slots.ts";
import { SessionTable } from "../../src/session/table.ts";
import { Counter, Recent } from "../../src/std/metrics.ts";
import { StoreDown } from "../../src/store/store.ts";
import { type FakeStore, fakeStore, funded } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { GatedModel } from "./gated-model.ts";
import { Gates } from "./gates.ts";

export class World {
  readonly clock = new FakeClock();
  readonly gates = new Gates();
  readonly store: FakeStore = fakeStore();
  readonly keys: string[] = [];
  readonly faults: string[] = [];
  /** The next commit is refused. */
  refuseCommit = false;
  /** Where the next run fails. */
  failStep: number | undefined;
  models: GatedModel[] = [];
  service!: Service;
  private app!: Pick<Elysia, "handle">;

  /** `models` makes the models of a process; called again when it is restarted. */
  static async open(models: () => readonly Model[]): Promise<World> {
    const world = new World(models);
    for (const [index, id] of ["acct_1", "acct_2"].entries()) {
      const key = makeKey();
      world.keys.push(key);
      await world.store.accountAdd(funded(id, `${index}@example.org`));
      const record = { publicId: keyPublicId(key) ?? "", sha256: keyDigest(key), accountId: id, name: "" };
      await world.store.keyAdd({ ...record, createdAt: 0 });
    }
    world.store.beforeKeep = () =>
      world.gates.hold("commit", async () => {
        const refused = world.refuseCommit;
        world.refuseCommit = false;
        return refused ? new StoreDown("refused by the history") : undefined;
      });
    world.store.beforeHold = () => world.gates.hold("hold", async () => undefined);
    world.start();
    return world;
  }

  private constructor(private readonly makeModels: () => readonly Model[]) {}

  /** A new process on the same store: what the old one waited for never comes. */
  start(): void {
    this.gates.forget();
    this.clock.forget();
    // As `serve` does with a store of its own: what a process held that is gone is nobody's.
    void this.store.holdsExpire({ before: Number.MAX_SAFE_INTEGER });
    const { clock, store } = this;
    const failStep = () => {
      const step = this.failStep;
      this.failStep = undefined;
      return step;
    };
    this.models = this.makeModels().map((model) => new GatedModel(model, this.gates, failStep));
    const catalog = new Catalog();
    catalog.known = true;
    for (const model of this.models) {
      const slots = model.slots > 0 ? new SlotPool(model) : undefined;
      catalog.models.set(model.manifest.id, { manifest: model.manifest, model, slots });
    }
    const note = (event: string, facts: object = {}) => {
      if (event === "request fault") this.faults.push(JSON.stringify(facts));
    };
    const people = new People({ store, clock, signUpOpen: false });
    this.service = {
      clock,
      people,
      devices: new DeviceLogins(store, people, clock),
      store,
      keys: new Keys(store, clock),
      meter: new Meter({
        store,
        clock,
        rates: () => ({ prompt: 1_000n, cachedPrompt: 100n, completion: 1_000_000n }),
        runMs: 10_000,
      }),
      catalog,
      log: { info: note, error: note },
      sessions: new SessionTable({ clock, store }),
      observations: new Observations(store),
      lifecycle: new Lifecycle(),
      ingress: new Ingress(),
      sockets: new Sockets(),
      // Narrow, so that robots wait for each other.
      admission: new Admission({ ...LIMITS, chunksMax: 3, accountChunksMax: 2 }),
      drills: new Drills(),
      requests: new Counter(),
      starts: { chat: new Recent(), episode: new Recent() },
      chunkMs: 10_000,
    };
    this.app = publicApp(this.service);
  }

  async send(path: string, account: number, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${this.keys[account]}`, "content-type": "application/json" };
    return await this.app.handle(new Request(`http://localhost${path}`, { headers, ...init }));
  }
}

/** Lets everything run that waits for nothing but its turn. */
export async function flush(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((done) => setImmediate(done));
}
