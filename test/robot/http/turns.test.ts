/** Requests without a free permit wait for their turn, over HTTP. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { present } from "../../../src/std/assert.ts";
import { MODEL, observation, type Stage, stage, textPart, withContent } from "../stage.ts";
import { expectClean, failure, session, settle } from "./outcome.ts";

/** Inferences of three frames that one account may have. */
const SHARE = Math.floor(LIMITS.accountFramesMax / 3);

/** Takes all of the account's share of frames; the result gives them back. */
function fill({ service }: Stage): () => void {
  const permits = Array.from({ length: SHARE }, () => service.robot.admission.take("acct_1", MODEL, 3));
  return () => {
    for (const permit of permits) if ("release" in permit) permit.release();
  };
}

test("a thousand requests of one account are all answered, while another account's is answered at once", async () => {
  const at = await stage();
  const other = await at.account("acct_2");
  const model = Promise.withResolvers<void>();
  let framesHeldMax = 0;
  at.engine.script.framePut = () => {
    framesHeldMax = Math.max(framesHeldMax, at.engine.framesHeld + 1);
    return undefined;
  };
  const many = Bun.hash.crc32("acct_1");
  at.engine.script.run = async (observed) => {
    if (observed.turn === many) await model.promise;
    return at.engine.chunk(observed);
  };
  const running = Array.from({ length: 1_000 }, (_, index) => at.chat(observation({ stream: index % 2 === 1 })));
  while (at.service.robot.admission.waiting < 1_000 - SHARE) await settle();
  expect([at.engine.observations.length, at.service.robot.admission.held]).toEqual([SHARE, SHARE]);
  expect((await other(observation())).status).toBe(200);
  expect([at.engine.observations.length, at.service.robot.admission.waiting]).toEqual([SHARE + 1, 1_000 - SHARE]);
  model.resolve();
  const answers = await Promise.all(
    running.map(async (pending) => {
      const response = await pending;
      return [response.status, (await response.text()).includes('"finish_reason":"stop"')];
    }),
  );
  expect(answers).toEqual(Array(1_000).fill([200, true]));
  expect([at.engine.observations.length, at.engine.commits]).toEqual([1_001, 1_001]);
  expect(framesHeldMax).toBeLessThanOrEqual(LIMITS.accountFramesMax);
  await expectClean(at, 0);
});

test("a waiting request has put no frame; its session is busy until it is answered", async () => {
  const at = await stage();
  const empty = fill(at);
  const pending = at.chat(session);
  await settle();
  expect([at.service.robot.admission.waiting, at.engine.framesPut]).toEqual([1, 0]);
  expect(await failure(await at.chat(session))).toMatchObject({ status: 409, code: "session_busy" });
  empty();
  expect((await pending).status).toBe(200);
  await expectClean(at, 1);
});

test("requests that need no permit do not wait: descriptions, and those that are refused before", async () => {
  const at = await stage();
  const empty = fill(at);
  const describe = await at.chat(withContent([textPart()], { robot_state: undefined }));
  const fields = await at.chat(observation({ seed: -1 }));
  const state = await at.chat(
    observation({ robot_state: { joint_position: Array(12).fill(0), gripper_position: [0, 2] } }),
  );
  expect([describe.status, fields.status, await failure(state)]).toMatchObject([200, 400, { code: "invalid_image" }]);
  empty();
  await expectClean(at, 0);
});

test("a waiting client that leaves frees its turn, its session and its observation_id", async () => {
  const at = await stage();
  const empty = fill(at);
  const client = new AbortController();
  const body = { ...session, observation_id: "o" };
  const pending = at.chat(body, { signal: client.signal });
  await settle();
  expect(at.service.robot.admission.waiting).toBe(1);
  client.abort();
  await pending;
  expect([at.service.robot.admission.waiting, at.service.robot.replays.size]).toEqual([0, 0]);
  empty();
  expect([at.engine.framesPut, at.service.robot.admission.held]).toEqual([0, 0]);
  await expectClean(at, 0);
});

test("permits that come free in the moment of the deadline are given back", async () => {
  const at = await stage();
  const empty = fill(at);
  const pending = at.chat(session);
  await settle();
  at.clock.advance(10_000);
  empty();
  expect(at.service.robot.admission.held).toBe(1);
  expect(await failure(await pending)).toMatchObject({ status: 503, code: "engine_unavailable" });
  expect(at.engine.framesPut).toBe(0);
  await expectClean(at, 0);
});

test("frames of a client that left hold their permits until a decoder comes to them", async () => {
  const at = await stage();
  const served = present(at.service.robot.catalog.models.get(MODEL), "the served model");
  const model = present(served.model, "the loaded model");
  const decoder = Promise.withResolvers<undefined>();
  at.engine.script.decode = () => decoder.promise;
  const slow: typeof model = {
    ...model,
    observe: (observation) => {
      const run = model.observe(observation);
      // The native engine does the same: a cancelled inference ends when no decoder is at its frames any more.
      return "result" in run ? { ...run, released: Promise.all([run.released, decoder.promise]).then(() => {}) } : run;
    },
  };
  at.service.robot.catalog.models.set(MODEL, { ...served, model: slow });
  const client = new AbortController();
  const pending = at.chat(session, { signal: client.signal });
  await settle();
  client.abort();
  await pending;
  expect([at.engine.framesHeld, at.service.robot.admission.held]).toEqual([0, 1]);
  decoder.resolve(undefined);
  await expectClean(at, 0);
});
