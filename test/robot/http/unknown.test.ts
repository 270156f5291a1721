/**
 * Contract section 2: `metering_unavailable` always means that nothing ran. When nobody can tell yet whether an answer's record is
 * durable, it is 503 `observation_outcome_unknown` with `Retry-After`, with or without an id. "Result gone" says not to retry.
 */
import { describe, expect, test } from "bun:test";
import { Drills, readDrills } from "../../../src/drill.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { Peer } from "../socket/peer.ts";
import { MODEL, observation, type Stage, stage } from "../stage.ts";
import { settle } from "./outcome.ts";

const UNKNOWN = "observation_outcome_unknown";

/** The moments at which the store fails, and whether the record is there afterwards. */
const FAULTS = {
  "before the commit": { kept: 0, code: "metering_unavailable" },
  "within the commit, which fails": { kept: 0, code: UNKNOWN },
  "after the commit, before its acknowledgement": { kept: 1, code: UNKNOWN },
} as const;

function fail(at: Stage, when: keyof typeof FAULTS): void {
  const { settleChunk } = at.store.robot;
  at.store.robot.settleChunk = async (chunk) => {
    if (when === "before the commit") return new StoreDown("refused");
    if (FAULTS[when].kept === 1) await settleChunk(chunk);
    return new StoreDown("connection lost", true);
  };
}

async function told(response: Response) {
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  const { headers, status } = response;
  const facts = { status, code: error.code, after: headers.get("retry-after"), retry: headers.get("x-should-retry") };
  return { ...facts, message: error.message };
}

const spent = async (at: Stage) => {
  await settle();
  const account = await at.store.accounts.accountById("acct_1");
  return account && !(account instanceof StoreDown) ? account.settled > 0n : undefined;
};

for (const [when, { kept, code }] of Object.entries(FAULTS)) {
  describe(`a store that fails ${when}`, () => {
    for (const id of [{ observation_id: "o" }, {}]) {
      const called = "observation_id" in id ? "with an id" : "without an id";

      test(`over HTTP ${called}: 503 ${code} with Retry-After`, async () => {
        const at = await stage();
        fail(at, when as keyof typeof FAULTS);
        const answer = await told(await at.chat(observation({ session_id: "s", ...id })));
        expect(answer).toMatchObject({ status: 503, code, after: "1", retry: null });
        expect(answer.message.includes("may have been taken")).toBe(code === UNKNOWN && called === "without an id");
        expect([await spent(at), at.store.kept.length]).toEqual([kept === 1, kept]);
      });

      test(`on a socket ${called}: ${code} with retry_after, 1008`, async () => {
        const at = await stage();
        const one = new Peer(at);
        await one.open({ session_id: "s", model: MODEL });
        fail(at, when as keyof typeof FAULTS);
        await one.act({ ...id });
        await settle();
        expect(one.last).toMatchObject({ type: "error", code, closing: true, retry_after: 1, ...id });
        expect([one.closed, await spent(at)]).toEqual([1008, kept === 1]);
      });
    }
  });
}

describe("a record of observations that cannot be read", () => {
  test("an id that may have been answered: 503 observation_outcome_unknown with Retry-After, and its answer later", async () => {
    const at = await stage();
    const body = observation({ observation_id: "o" });
    const first = await at.chat(body);
    const { observation: read } = at.store.robot;
    at.store.robot.observation = async () => new StoreDown("gone");
    expect(await told(await at.chat(body))).toMatchObject({ status: 503, code: UNKNOWN, after: "1", retry: null });
    at.store.robot.observation = read;
    const again = await at.chat(body);
    expect([again.headers.get("idempotent-replayed"), await again.text()]).toEqual(["true", await first.text()]);
  });

  test("a record of sessions that cannot be read: nothing ran, metering_unavailable", async () => {
    const at = await stage();
    at.store.robot.sessionLastAt = async () => new StoreDown("gone");
    expect(await told(await at.chat(observation({ session_id: "s" })))).toMatchObject({ code: "metering_unavailable" });
    expect(await spent(at)).toBe(false);
  });

  test("a session whose record may be kept: its id may be used up, which the message says", async () => {
    const at = await stage();
    at.store.robot.sessionOpen = async () => new StoreDown("connection lost", true);
    const one = new Peer(at);
    await one.open({ session_id: "s" });
    expect(one.last).toMatchObject({ code: "metering_unavailable", retry_after: 1 });
    expect(one.last.message).toContain("new session_id");
  });
});

describe("a result that is gone says not to retry", () => {
  async function lost() {
    const drills = readDrills("result_lost");
    return await stage({ drills: drills instanceof Drills ? drills : new Drills() });
  }

  test("over HTTP: x-should-retry: false, and no Retry-After", async () => {
    const at = await lost();
    const body = observation({ observation_id: "o" });
    expect((await at.chat(body)).status).toBe(200);
    expect(await told(await at.chat(body))).toMatchObject({ status: 503, code: UNKNOWN, retry: "false", after: null });
  });

  test("on a socket: no retry_after, which an observation that still runs has", async () => {
    const at = await lost();
    expect((await at.chat(observation({ session_id: "s", observation_id: "o" }))).status).toBe(200);
    const one = new Peer(at);
    await one.open({ session_id: "s" });
    await one.act({ observation_id: "o" });
    await settle();
    expect(one.last).toMatchObject({ code: UNKNOWN, closing: true });
    expect(one.last).not.toHaveProperty("retry_after");
  });
});
