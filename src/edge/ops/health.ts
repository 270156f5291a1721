/** `GET /healthz`: the process is alive. `GET /readyz`: it can serve, or what is missing. */
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import { StoreDown } from "../../store/store.ts";
import { failureReply, type Reply } from "../http/answer.ts";
import type { Service } from "../service.ts";

export async function healthz(): Promise<Reply> {
  return { status: 200, body: '{"status":"alive"}' };
}

export async function readyz(service: Service): Promise<Reply> {
  const missing = await missingParts(service);
  if (missing.length === 0) {
    return { status: 200, body: JSON.stringify({ status: "ready", models: service.catalog.ids }) };
  }
  const failure = new Failure(ROBOT.engine_unavailable, `not ready: ${missing.join("; ")}; ask again in a second`);
  const reply = failureReply(failure);
  return { ...reply, body: JSON.stringify({ ...failure.body(), missing }) };
}

async function missingParts(service: Service): Promise<string[]> {
  const { lifecycle, catalog } = service;
  const missing: string[] = [];
  if (lifecycle.draining) missing.push("the service is shutting down");
  if (!catalog.known) missing.push("the model bundles are being read");
  for (const id of catalog.loading) missing.push(`model ${id} is loading`);
  const down = await storeDown(service);
  if (down) {
    service.log.error("store down", { reason: down.reason });
    missing.push("the store does not answer");
  }
  return missing;
}

/** Why the store is down; one that says nothing in time is down as well. */
async function storeDown({ store, clock }: Service): Promise<StoreDown | undefined> {
  const { promise, resolve } = Promise.withResolvers<StoreDown>();
  const silent = new StoreDown(`nothing was heard of it within ${LIMITS.storePingMs} ms`);
  const disarm = clock.after(LIMITS.storePingMs, () => resolve(silent));
  try {
    return await Promise.race([store.ping(), promise]);
  } finally {
    disarm();
  }
}
