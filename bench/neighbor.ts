/** Another account and its load: the cheapest paid request, at a fixed rate, from a process of its own (requests-child.ts). */
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { keyDigest, keyPublicId, makeKey } from "../src/account/key.ts";
import { childEnvironment } from "../src/config/environment.ts";
import { smallRequest } from "../src/measure/sample/small-request.ts";
import { monthOf } from "../src/std/calendar.ts";
import { systemClock } from "../src/std/clock.ts";
import { makeId } from "../src/std/ids.ts";
import { Problem } from "../src/std/problem.ts";
import type { Measured } from "./ledger.ts";

/** Nano-dollars. A chunk costs nothing here, but an account without credit may not ask for one. */
const CREDIT = 1_000_000_000n;

const Sent = Type.Object({
  per_second: Type.Number(),
  sent: Type.Integer(),
  failed: Type.Integer(),
  first_failure: Type.String(),
  p50_ms: Type.Number(),
  p99_ms: Type.Number(),
});
type Sent = Static<typeof Sent>;

export interface Neighbor {
  /** From here on requests are counted. */
  count(): void;
  stop(): Promise<Sent | Problem>;
}

export async function startNeighbor(
  { child, beside }: Pick<Measured, "child" | "beside">,
  perSecond: number,
): Promise<Neighbor | Problem> {
  const apiKey = await otherKey(beside, "neighbor", CREDIT);
  if (apiKey instanceof Problem) return apiKey;
  const request = await smallRequest();
  if (request instanceof Problem) return request;
  const body = JSON.stringify(request);
  const answer = Promise.withResolvers<unknown>();
  const lost = (how: string) => answer.resolve(new Problem(`requests-child.ts ended with ${how} and no answer`));
  const sender = Bun.spawn([process.execPath, join(import.meta.dir, "requests-child.ts")], {
    env: childEnvironment({}),
    stdio: ["ignore", "ignore", "inherit"],
    ipc: (message) => answer.resolve(message),
    onExit: (_sender, code, signal) => lost(String(code ?? signal)),
  });
  sender.send({ url: `${child.service.url}/v1/chat/completions`, apiKey, body, perSecond });
  return {
    count: () => sender.send("count"),
    stop: async () => {
      sender.send("stop");
      const sent = await answer.promise;
      await sender.exited;
      if (sent instanceof Problem) return sent;
      return Value.Check(Sent, sent) ? sent : new Problem("requests-child.ts answered something else than its counts");
    },
  };
}

/** A key of an account of its own, with this credit; `spent`: which is gone once the key is made. */
export async function otherKey(
  beside: Measured["beside"],
  name: string,
  credit: bigint,
  spent = false,
): Promise<string | Problem> {
  const store = await beside();
  if (store instanceof Problem) return store;
  try {
    const [accountId, key] = [makeId("acct_", systemClock), makeKey()];
    const createdAt = Math.floor(systemClock.unixMs() / 1000);
    const account = {
      id: accountId,
      email: `${name}@localhost`,
      createdAt,
      credit,
      paymentMethod: false,
      verified: true,
    };
    const added = await store.accounts.accountAdd({ ...account, spendLimit: undefined, password: undefined });
    if (added !== "added") return new Problem(`the account of ${name} was not added: ${JSON.stringify(added)}`);
    const record = { publicId: keyPublicId(key) ?? "", sha256: keyDigest(key), accountId, name, createdAt };
    const kept = await store.accounts.keyAdd(record);
    if (spent) {
      const transfer = { accountId, transferId: `${accountId} spent`, amount: -credit, at: createdAt };
      const gone = await store.charges.credit({ ...transfer, month: monthOf(createdAt) });
      if (gone !== "credited") return new Problem(`the credit of ${name} was not spent: ${JSON.stringify(gone)}`);
    }
    return kept === "added" ? key : new Problem(`the key of ${name} was not added: ${JSON.stringify(kept)}`);
  } finally {
    await store.close();
  }
}
