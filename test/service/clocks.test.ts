/**
 * Contract section 1: "Wall clocks jump. At start or while serving, forward or back by days: no marker, job or session is dropped
 * early, no limit is lifted or frozen, no lock-out stays. What is kept for a span is kept for at least that much time that the
 * service has seen pass." charge/store/money.ts tests the month of a limit, program/clocks.test.ts the real program.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PageRefusal } from "../../src/account/errors.ts";
import { LIMITS } from "../../src/limits.ts";
import { startUpload } from "../../src/runs/uploads.ts";
import { Failure } from "../../src/std/failure.ts";
import { JOB, LIVE } from "../llm/stage.ts";
import { observation } from "../robot/stage.ts";
import { ENGINES, startServer, stopServer } from "../store/engines.ts";
import { expectSound, money } from "../store/rows.ts";
import { ClockStage, DAY } from "./clock-stage.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Whether it ran, was replayed, or why not. */
async function saidOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error?: { code: string } };
  return error?.code ?? (response.headers.get("idempotent-replayed") === "true" ? "replayed" : "ran");
}

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    const begun = async (beside?: ClockStage) => {
      const stage = await ClockStage.start(name, beside);
      await stage.begin();
      return stage;
    };

    test("answers of robots are replayed and ids of ended sessions answer 410, for as long as they are kept, and no longer", async () => {
      await using stage = await begun();
      const ann = await stage.account("ann");
      const ask = async (fields: object) =>
        await saidOf(await stage.post(ann, "/v1/chat/completions", { ...observation(), ...fields }));
      const [inSession, alone] = [{ session_id: "s", observation_id: "o" }, { observation_id: "alone" }];
      expect([await ask(inSession), await ask(alone)]).toEqual(["ran", "ran"]);
      await stage.send(ann, "/v1/robot/sessions/s?model=vendorB/molmoact2:yam", { method: "DELETE" });
      const { settled } = await money(stage.store, ann);
      await stage.jumping(async (when) => {
        const said = [await ask(inSession), await ask(alone), await ask({ session_id: "s" })];
        expect([when, ...said]).toEqual([when, "replayed", "replayed", "session_expired"]);
      });
      expect([await money(stage.store, ann), stage.engine.observations.length]).toMatchObject([
        { settled, held: 0n },
        2,
      ]);
      // The time that the service sees pass ends them: the answers after ten minutes, what it knows of them after a day.
      await stage.pass(LIMITS.sessionIdleMs + LIMITS.replyKeptMs + MINUTE);
      expect([await ask(inSession), await ask(alone)]).toEqual(Array(2).fill("observation_outcome_unknown"));
      await stage.jumping(async (when) =>
        expect([when, await ask(inSession)]).toEqual([when, "observation_outcome_unknown"]),
      );
      await stage.pass(23 * HOUR);
      expect(await ask({ session_id: "s" })).toBe("session_expired");
      await stage.pass(2 * HOUR);
      expect([await ask(inSession), await ask(alone)]).toEqual(["ran", "ran"]);
      await expectSound(stage.store);
    });

    test("time during which nothing serves does not pass: what is kept is there after a month", async () => {
      await using stage = await begun();
      const ann = await stage.account("ann");
      const ask = async () =>
        await saidOf(await stage.post(ann, "/v1/chat/completions", observation({ observation_id: "o" })));
      expect(await ask()).toBe("ran");
      await stage.end("stopped");
      stage.clock.advance(30 * DAY);
      await stage.begin();
      expect(await ask()).toBe("replayed");
    });

    test("responses and keys of language models are kept for thirty days, and jobs that wait are run", async () => {
      await using stage = await begun();
      const ann = await stage.account("ann");
      const ask = (model: string, key: string) =>
        stage.post(ann, "/v1/responses", { model, input: "Hi" }, { "idempotency-key": key });
      const first = await ask(LIVE, "live");
      const { id } = (await first.json()) as { id: string };
      expect(first.status).toBe(200);
      expect((await ask(JOB, "job")).status).toBe(200);
      const ended = async () => {
        const response = await ask(JOB, "job");
        return ((await response.json()) as { status: string }).status === "completed";
      };
      while (!(await ended())) await Bun.sleep(1);
      const seen = async () => [
        await saidOf(await ask(LIVE, "live")),
        await saidOf(await ask(JOB, "job")),
        (await stage.send(ann, `/v1/responses/${id}`)).status,
        stage.provider.exchanges.length,
      ];
      await stage.jumping(async (when) => {
        expect([when, ...(await seen())]).toEqual([when, "replayed", "replayed", 200, 2]);
      });
      await stage.pass(29 * DAY);
      expect(await seen()).toEqual(["replayed", "replayed", 200, 2]);
      await stage.pass(2 * DAY);
      expect((await stage.send(ann, `/v1/responses/${id}`)).status).toBe(404);
      expect(await saidOf(await ask(LIVE, "live"))).toBe("ran");
      await expectSound(stage.store);
    });

    test("a hold lasts for its time: the money is not spent twice, and comes back", async () => {
      await using stage = await begun();
      await stage.account("ann", { credit: 1_000n });
      const hold = async (chargeId: string) => {
        const rates = { prompt: 1n, cachedPrompt: 1n, completion: 0n };
        const max = { promptTokens: 600, completionTokens: 0 };
        const fields = { chargeId, accountId: "ann", item: "m", rates, max, deadlineMs: 10_000 };
        const held = await stage.service.core.charges.hold(fields);
        return held instanceof Failure ? held.code : "held";
      };
      // A service on a private store releases all holds at its start: no process is left that could settle them.
      const moments = stage.store.exclusive ? (["serving"] as const) : (["serving", "stopped", "killed"] as const);
      expect(await hold("first")).toBe("held");
      await stage.jumping(
        async (when) => expect([when, await hold(when)]).toEqual([when, "insufficient_credit"]),
        moments,
      );
      await stage.pass(1_000 * (10 + LIMITS.holdGraceSeconds) - MINUTE / 60);
      expect(await hold("early")).toBe("insufficient_credit");
      // Whatever the clock shows when a hold is made, it ends.
      await stage.jumping(
        async (when) => {
          await stage.pass(MINUTE);
          expect([when, await hold(when)]).toEqual([when, "held"]);
        },
        ["serving"],
      );
      await expectSound(stage.store);
    });

    test("usage is kept run by run for four hundred days, and the clock's days are those of the calendar", async () => {
      await using stage = await begun();
      const ann = await stage.account("ann");
      const runs = async () => Number((await stage.at.rows("SELECT count(*) AS runs FROM charges"))[0]?.runs);
      const days = async () => {
        const found = await stage.at.rows("SELECT DISTINCT day FROM usage_days ORDER BY day");
        return found.map(({ day }) => Number(day));
      };
      const run = async () => await saidOf(await stage.post(ann, "/v1/chat/completions", observation()));
      const today = () => Math.floor(stage.clock.unixMs() / DAY);
      const shown = [today()];
      await run();
      await stage.jumping(async () => {
        shown.push(today());
        await run();
      });
      expect([await runs(), await days()]).toEqual([shown.length, [...new Set(shown)].sort((a, b) => a - b)]);
      await stage.pass(399 * DAY);
      expect(await runs()).toBe(shown.length);
      await stage.pass(2 * DAY);
      expect(await runs()).toBe(0);
      await expectSound(stage.store);
    });

    test("links, sign-ins and device logins last for their time", async () => {
      await using stage = await begun();
      const person = { email: "ann@example.org", password: "correct horse battery", network: "n" };
      const link = await stage.service.people.operatorLink();
      if (typeof link !== "string") throw new Error("no link");
      await stage.jumping(async (when) => {
        expect([when, await stage.service.people.link(link)]).toEqual([when, { operator: true, email: "", keys: 0 }]);
      });
      const redeemed = await stage.service.people.redeem({ ...person, token: link, keys: "" });
      if (!("token" in redeemed)) throw new Error(redeemed.text);
      const { token } = redeemed;
      await stage.jumping(async (when) => {
        expect([when, await stage.service.people.person(token)]).toMatchObject([when, { email: person.email }]);
      });
      const { people, identities } = stage.service;
      const provided = await identities.enter({ issuer: "https://id.example", subject: "1", email: "b@example.org" });
      if (typeof provided !== "string") throw new Error(provided.text);
      await stage.jumping(async (when) => {
        expect([when, await stage.service.people.person(provided)]).toMatchObject([when, { email: "b@example.org" }]);
      });
      const late = await people.signIn(person);
      if (!("token" in late)) throw new Error(late.text);
      await stage.pass(6 * DAY);
      expect(await stage.service.people.person(token)).toMatchObject({ email: person.email });
      await stage.pass(2 * DAY);
      expect(await stage.service.people.person(token)).toBeUndefined();
      // A device login, over HTTP.
      const post = async (path: string, fields: Record<string, string>) => {
        const body = new URLSearchParams({ client_id: "tendon-cli", ...fields }).toString();
        const headers = { "content-type": "application/x-www-form-urlencoded" };
        const answer = await stage.send("nobody", path, { method: "POST", body, headers });
        return (await answer.json()) as { error?: string; device_code: string };
      };
      const begin = () => post("/oauth/device_authorization", { device_name: "arm" });
      const { device_code } = await begin();
      const poll = async () =>
        (await post("/oauth/token", { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code })).error;
      await stage.jumping(async (when) => {
        await stage.pass(6_000);
        expect([when, await poll()]).toEqual([when, "authorization_pending"]);
      });
      await stage.pass(12 * MINUTE);
      expect(await poll()).toBe("authorization_pending");
      stage.clock.advance(3 * MINUTE);
      expect(await poll()).toBe("expired_token");
      await stage.turn();
      expect(await poll()).toBe("invalid_grant");
    });

    test("a throttle is neither lifted by a clock that jumps, nor does its lock-out stay", async () => {
      await using stage = await begun();
      const tries = async () => {
        const refused = await stage.service.people.tried(["x", 1]);
        return refused instanceof PageRefusal ? (refused.retryAfterSeconds ?? 0) : "allowed";
      };
      for (let round = 0; round < 3; round += 1) {
        expect([await tries(), await tries()]).toEqual(["allowed", LIMITS.attemptSeconds]);
        await stage.jumping(async (when) => expect([when, await tries()]).toEqual([when, LIMITS.attemptSeconds]));
        await stage.pass(LIMITS.attemptSeconds * 1_000 - MINUTE);
        expect(await tries()).toBe(60);
        await stage.pass(MINUTE);
      }
      expect(await tries()).toBe("allowed");
    });

    test("uploads stay for seven days, and what another process receives for three hours", async () => {
      await using stage = await begun();
      const { runs } = stage.store;
      const run = { accountId: await stage.account("ann"), robot: "arm", run: "one" };
      const { blobs } = stage.service.runs;
      // This service keeps no blobs.
      blobs.hasRoom = async () => undefined;
      const started = await startUpload(stage.service.runs, { ...run, path: "up" }, 5, undefined);
      if (started instanceof Failure) throw new Error(started.message);
      const seconds = Math.floor(stage.clock.unixMs() / 1_000);
      expect(started.expiresAt).toBe(seconds + LIMITS.runUploadSeconds);
      const at = Math.floor(stage.service.core.clock.seenMs() / 1_000);
      const file = {
        ...run,
        ...stage.service.runs.bounds,
        runId: "run_2",
        blobId: "b",
        path: "a",
        size: 7,
        owner: "node",
        at,
      };
      expect(await runs.fileBegin(file)).toBe("begun");
      const shown = async () => {
        const path = `/v1/robot/runs/arm/one/uploads/up?upload_id=${started.uploadId}`;
        const { expires_at } = (await (await stage.send("ann", path)).json()) as { expires_at?: number };
        return expires_at === undefined ? "gone" : expires_at - Math.floor(stage.clock.unixMs() / 1_000);
      };
      const reserved = async () => (await stage.at.rows("SELECT reserved FROM run_accounts"))[0]?.reserved;
      await stage.jumping(async (when) => {
        expect([when, await reserved(), await shown()]).toEqual([when, 12n + 1024n, LIMITS.runUploadSeconds]);
      });
      await stage.pass(3 * HOUR - MINUTE);
      expect(await reserved()).toBe(12n + 1024n);
      await stage.pass(2 * MINUTE);
      expect(await reserved()).toBe(5n);
      await stage.pass(6 * DAY);
      expect(await reserved()).toBe(5n);
      await stage.pass(DAY);
      expect([await reserved(), await shown()]).toEqual([0n, "gone"]);
    });

    test("nodes side by side see the same time pass, whatever their clocks show: none is dropped early by another's", async () => {
      await using one = await begun();
      const ann = await one.account("ann");
      await using other = await ClockStage.start(name, one);
      other.clock.jump(3 * DAY);
      await other.begin();
      const ask = async (node: ClockStage) =>
        await saidOf(await node.post(ann, "/v1/chat/completions", observation({ observation_id: "o" })));
      expect(await ask(one)).toBe("ran");
      const from = one.service.core.clock.seenMs();
      for (let second = 0; second < 600; second += 1) {
        for (const node of [one, other]) {
          node.clock.advance(1_000);
          if (second % 60 === 0) await node.turn();
        }
      }
      const seen = [one, other].map((node) => Math.round((node.service.core.clock.seenMs() - from) / 1_000));
      expect(seen).toEqual([600, 600]);
      expect([await ask(one), await ask(other)]).toEqual(["replayed", "replayed"]);
      // One that starts when the others have seen more goes on from there, and one whose process stood still catches up.
      await other.end("killed");
      await one.pass(HOUR);
      await other.begin();
      expect(other.service.core.clock.seenMs()).toBe(from + 600_000 + HOUR);
      await one.pass(HOUR);
      await other.turn();
      expect(other.service.core.clock.seenMs()).toBe(one.service.core.clock.seenMs());
    }, 60_000);
  });
}
