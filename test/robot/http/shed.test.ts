/** Past its capacity the service refuses at once what it could not answer in time, and nothing else. */
import { expect, test } from "bun:test";
import { money } from "../socket/peer.ts";
import { observation, type Stage, stage } from "../stage.ts";
import { expectClean, failure, session, settle } from "./outcome.ts";

const RUN_MS = 97;

/** A model that answers one inference after the other, `RUN_MS` each by the fake clock. */
class OneByOne {
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly at: Stage) {
    at.engine.script.run = async (observed) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.waiting.push(resolve);
      await promise;
      return { ...at.engine.chunk(observed), micros: { decoded: 0, queue: 0, prefill: 0, denoise: 0, encode: 0 } };
    };
  }

  /** Answers the inference that came first, or last. */
  async answer(which: "first" | "last" = "first"): Promise<void> {
    this.at.clock.advance(RUN_MS);
    const run = which === "first" ? this.waiting.shift() : this.waiting.pop();
    run?.();
    await settle();
  }

  /** Answers enough observations for the service to know its pace. */
  async warm(): Promise<void> {
    for (let n = 0; n < 8; n += 1) {
      const answer = this.at.chat(observation());
      await settle();
      await this.answer();
      expect((await answer).status).toBe(200);
    }
  }

  /** Answers every later inference at once. */
  end(): void {
    this.at.engine.script.run = async (observed) => this.at.engine.chunk(observed);
  }
}

function statuses(answers: readonly Promise<Response>[]): Promise<number[]> {
  return Promise.all(answers.map(async (answer) => (await answer).status));
}

test("an observation that cannot make its own deadline is refused at once, free, before its frames are decoded", async () => {
  const at = await stage();
  const model = new OneByOne(at);
  await model.warm();
  const price = (await money(at)).paid / 8n;
  const inside = Array.from({ length: 12 }, () => at.chat(observation()));
  await settle();
  const [cameras, runs] = [at.engine.framesPut, at.engine.observations.length];
  const refused = await at.chat({ ...session, observation_id: "o", deadline_ms: 1_000 });
  expect(refused.headers.get("retry-after")).toBe("2");
  expect(await failure(refused)).toEqual({ status: 503, code: "engine_unavailable", param: undefined });
  expect([at.engine.framesPut, at.engine.observations.length]).toEqual([cameras, runs]);
  expect([at.service.robot.forecast.shed, at.service.robot.forecast.inside]).toEqual([1, 12]);
  // An observation with more time, or without a deadline, may wait.
  inside.push(at.chat(observation({ deadline_ms: 5_000 })), at.chat(observation()));
  await settle();
  // Accounts take turns: another one's need not wait behind all of these.
  const other = await at.account("acct_2");
  const quick = other(observation({ deadline_ms: 1_000 }));
  await settle();
  await model.answer("last");
  expect((await quick).status).toBe(200);
  for (const _ of inside) await model.answer();
  expect(await statuses(inside)).toEqual(Array(14).fill(200));
  expect(await money(at)).toEqual({ paid: 22n * price, held: 0n });
  // The refused one has left nothing behind: once the service is idle the same id runs.
  const again = at.chat({ ...session, observation_id: "o", deadline_ms: 1_000 });
  await settle();
  await model.answer();
  expect([(await again).status, (await again).headers.get("idempotent-replayed")]).toEqual([200, null]);
  model.end();
  await expectClean(at, 1);
});

test("an observation without a deadline has the service's time", async () => {
  const at = await stage();
  const model = new OneByOne(at);
  await model.warm();
  // The number that is answered in eight seconds, the part of the ten that may be used.
  const inside = Array.from({ length: Math.floor(8_000 / RUN_MS) }, () => at.chat(observation()));
  await settle();
  const refused = await at.chat(observation());
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "8"]);
  for (const _ of inside) await model.answer();
  expect(await statuses(inside)).toEqual(inside.map(() => 200));
  model.end();
  await expectClean(at, 0);
});

test("an answered observation is replayed however much waits", async () => {
  const at = await stage();
  const model = new OneByOne(at);
  await model.warm();
  const first = at.chat({ ...session, observation_id: "o" });
  await settle();
  await model.answer();
  expect((await first).status).toBe(200);
  const inside = Array.from({ length: 12 }, () => at.chat(observation()));
  await settle();
  const again = await at.chat({ ...session, observation_id: "o", deadline_ms: 100 });
  expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  for (const _ of inside) await model.answer();
  expect(await statuses(inside)).toEqual(Array(12).fill(200));
  model.end();
  await expectClean(at, 1);
});
