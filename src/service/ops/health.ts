/** `GET /healthz`: the process is alive. `GET /readyz`: it can serve, or what is missing. */
import { type Static, Type } from "@sinclair/typebox";
import { failureReply } from "../../http/answer.ts";
import { NO_BODY } from "../../http/body-rules.ts";
import { errorSchema, headers, json, type Operation } from "../../http/operation.ts";
import { NO_KEY, type Reply, route } from "../../http/route.ts";
import type { Surface } from "../../http/surface.ts";
import { LIMITS } from "../../limits.ts";
import type { Catalog } from "../../robot/catalog.ts";
import { ROBOT, ROBOT_ANSWERS } from "../../robot/errors.ts";
import type { Clock } from "../../std/clock.ts";
import { Failure } from "../../std/failure.ts";
import type { Lifecycle } from "../../std/lifecycle.ts";
import type { Log } from "../../std/log.ts";
import type { BaseStore } from "../../store/base.ts";
import { type StoreBase, StoreDown } from "../../store/store.ts";

export interface HealthDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
  readonly catalog: Pick<Catalog, "ids" | "known" | "loading" | "models" | "out">;
  readonly store: Pick<StoreBase, "ping"> & { readonly base: Pick<BaseStore, "probe"> };
  /** The bytes of runs. */
  readonly blobs?: { readonly endedReason: string | undefined };
  readonly ownership?: { readonly missing: string | undefined };
  readonly ledger?: { readonly warning: string | undefined };
}

export function health(deps: HealthDeps): Surface {
  const durable = durableWrites(deps);
  const get = (name: string, operation: Operation, handle: () => Promise<Reply>) =>
    route({ method: "GET", path: `/${name}`, name, key: NO_KEY, body: NO_BODY, operation, handle });
  return {
    tag: "Service",
    answers: ROBOT_ANSWERS,
    routes: [
      get("healthz", HEALTHZ, async () => ({ status: 200, body: '{"status":"alive"}' })),
      get("readyz", READYZ, () => readyz(deps, durable)),
    ],
    schemas: { Alive, Ready, NotReady },
  };
}

const HEALTHZ: Operation = {
  operationId: "healthz",
  summary: "Whether the process is alive",
  responses: { "200": { description: "It is.", headers: headers(), content: json("Alive") } },
};

const READYZ: Operation = {
  operationId: "readyz",
  summary: "Whether requests can be served",
  description: "Also the list of served model ids. For load balancers: not ready from the signal to shut down on.",
  responses: {
    "200": {
      description:
        "Every configured model is warm and has a replica that works, and the store answers and takes durable writes.",
      headers: headers(),
      content: json("Ready"),
    },
    "503": {
      description: "- `engine_unavailable`: not yet, or no longer; `missing` says what is missing.",
      headers: headers("Retry-After"),
      content: json("NotReady"),
    },
  },
};

const Alive = Type.Object({ status: Type.Literal("alive") }, { title: "Alive" });

const Placement = Type.Object(
  {
    model: Type.String(),
    device: Type.String({ description: "The device that it runs on; of several their names, with commas." }),
    replicas: Type.Array(Type.String(), { description: "The device of each replica, by its number." }),
    refused: Type.Array(
      Type.Object({
        device: Type.String(),
        reason: Type.String({
          description: "Why: a missing library, or how far its rows are from those of the bundle's parity vectors.",
        }),
      }),
      { description: "Devices that `auto` tried before." },
    ),
    slots: Type.Optional(
      Type.Integer({
        description: "Sessions that it takes at once, on a model with memory; beyond them: `no_replica_free`.",
      }),
    ),
    places: Type.Optional(
      Type.Integer({
        description: "Of these, sessions whose memory lies where it computes; the others are parked meanwhile.",
      }),
    ),
    slot_bytes: Type.Optional(Type.Integer({ description: "Memory of one session at most." })),
  },
  { title: "Placement" },
);

const Ready = Type.Object(
  {
    status: Type.Literal("ready"),
    models: Type.Array(Type.String(), { description: "The served model ids." }),
    placements: Type.Array(Placement, { description: "Where each of them runs." }),
    out: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        description: "Replicas that take no more work, with the reason, a sentence each; others of their models go on.",
      }),
    ),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description: "What the operator must see to although requests are served, a sentence each.",
      }),
    ),
  },
  { title: "Ready" },
);

const NotReady = Type.Object(
  {
    error: errorSchema,
    missing: Type.Array(Type.String(), { minItems: 1, description: "What is missing, a sentence each." }),
  },
  { title: "Not ready" },
);

type Durable = () => Promise<StoreDown | undefined>;

async function readyz(deps: HealthDeps, durable: Durable): Promise<Reply> {
  const missing = await missingParts(deps, durable);
  if (missing.length === 0) {
    const out = deps.catalog.out("some").map(withoutFolders);
    const warning = deps.ledger?.warning;
    const ready = {
      status: "ready",
      models: deps.catalog.ids,
      placements: placements(deps.catalog),
      ...(out.length > 0 && { out }),
      ...(warning === undefined ? {} : { warnings: [warning] }),
    };
    return { status: 200, body: JSON.stringify(ready) };
  }
  const failure = new Failure(ROBOT.engine_unavailable, `not ready: ${missing.join("; ")}; ask again in a second`);
  const reply = failureReply({ failure });
  return { ...reply, body: JSON.stringify({ ...failure.body(), missing }) };
}

async function missingParts(deps: HealthDeps, durable: Durable): Promise<string[]> {
  const { lifecycle, catalog } = deps;
  const missing: string[] = [];
  if (lifecycle.draining) missing.push("the service is shutting down");
  if (!catalog.known) missing.push("the model bundles are being read");
  for (const id of catalog.loading) missing.push(`model ${id} is loading`);
  missing.push(...catalog.out("none").map(withoutFolders));
  if (deps.blobs?.endedReason !== undefined) missing.push("the storage of runs has ended, which only a restart mends");
  if (deps.ownership?.missing !== undefined) missing.push(deps.ownership.missing);
  const down = await inTime(deps, () => deps.store.ping());
  const readOnly = down ? undefined : await inTime(deps, durable);
  if (down) {
    deps.log.error("store down", { reason: down.reason });
    missing.push("the store does not answer");
  } else if (readOnly) {
    deps.log.error("store takes no writes", { reason: readOnly.reason });
    missing.push("the store takes no durable writes; is its disk full?");
  }
  return missing;
}

/** Why the store is down; one that does not answer in time is down as well. */
async function inTime({ clock }: HealthDeps, ask: Durable): Promise<StoreDown | undefined> {
  const { promise, resolve } = Promise.withResolvers<StoreDown>();
  const silent = new StoreDown(`it did not answer within ${LIMITS.storePingMs} ms`);
  const disarm = clock.after(LIMITS.storePingMs, () => resolve(silent));
  return await Promise.race([ask(), promise]).finally(disarm);
}

/** The devices and sessions of each loaded model, and the devices that were refused before. */
export function placements(catalog: Pick<Catalog, "models">): Static<typeof Placement>[] {
  return [...catalog.models].flatMap(([id, { model }]) => {
    if (model === undefined) return [];
    const refused = model.refused.map(({ device, reason }) => ({ device, reason: withoutFolders(reason) }));
    const { slots, sessionMemory } = model;
    const { places, slotBytes } = sessionMemory;
    const memory = slots === 0 ? {} : { slots, places, slot_bytes: slotBytes };
    return [{ model: id, device: model.device, replicas: [...model.devices], refused, ...memory }];
  });
}

/** No response carries a path: of a file its name is left. `tendon doctor` and the log have the whole text. */
function withoutFolders(text: string): string {
  return text.replace(/(^|[\s"'(=:])(?:\/[^\s"'/:]+)+\/([^\s"'/:]+)/g, "$1$2");
}

/**
 * Asks by writing whether the store takes durable writes, at most once a second however many ask. A write without an outcome is
 * shared by all who ask: none is sent behind it.
 */
function durableWrites({ clock, store }: HealthDeps): Durable {
  const write = async () => {
    const kept = await store.base.probe();
    return kept === "kept" ? undefined : kept;
  };
  let last: { readonly atMs: number; readonly outcome: ReturnType<typeof write> } | undefined;
  let pending = false;
  return () => {
    const atMs = clock.monotonicMs();
    if (last && (pending || atMs - last.atMs < LIMITS.storeProbeMs)) return last.outcome;
    pending = true;
    const outcome = write().finally(() => {
      pending = false;
    });
    last = { atMs, outcome };
    return outcome;
  };
}
