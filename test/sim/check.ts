/** The promises of the robot route, looked at from outside: what a history must keep, whatever happened in it. */
import { Fault } from "../../src/engine/fault.ts";
import { assert, present } from "../../src/std/assert.ts";
import { Failure } from "../../src/std/failure.ts";
import { rowsText } from "../../src/std/float32.ts";
import { memoryOf } from "../engine/memory.ts";
import type { KnownModel } from "../fake-engine.ts";
import type { Committed, GatedModel } from "./gated-model.ts";
import type { History } from "./history.ts";
import { checkSaid } from "./link-check.ts";
import type { Reply, RobotSent } from "./requests.ts";
import { EARLY_FRAMES_MAX } from "./world.ts";

interface Body {
  readonly error?: { readonly code: string };
  readonly choices?: readonly [
    { readonly message?: { readonly content: string }; readonly delta?: { content: string } },
  ];
}

/** One terminal reply of the right form; its code, or its step. */
export function checkReply(all: readonly RobotSent[], sent: RobotSent, reply: Reply): { code?: string; step?: number } {
  assert(sent.replies.length === 0, `#${sent.index} has one terminal reply`);
  const streamed = reply.status === 200 && sent.body.stream === true;
  const body: Body = JSON.parse(streamed ? terminalEvent(reply.text) : reply.text);
  if (body.error) return { code: body.error.code };
  const message = body.choices?.[0];
  const chunk = JSON.parse((streamed ? message?.delta : message?.message)?.content ?? "null") as { step: number };
  const named = sent.body.session_id !== undefined;
  assert(reply.step === (named ? String(chunk.step) : null), `#${sent.index}: X-Session-Step is that of the chunk`);
  if (sent.body.expected_step !== undefined && !reply.replayed) {
    assert(chunk.step === sent.body.expected_step, `#${sent.index}: the step is the expected one`);
  }
  const first = all.find((other) => sameContent(other, sent) && other.replies.some(({ status }) => status === 200));
  const earlier = first?.replies[0];
  const siblings = all.slice(0, sent.index).filter((other) => sameContent(other, sent));
  assert(!reply.replayed || siblings.length > 0, `#${sent.index} replays an answer to the same content`);
  if (reply.replayed && earlier && !isError(earlier.text)) {
    assert(
      reply.text.replaceAll(": processing\n\n", "") === earlier.text.replaceAll(": processing\n\n", "") &&
        reply.generationId === earlier.generationId,
      `#${sent.index} replays byte for byte what #${first?.index} got`,
    );
  }
  return { step: chunk.step };
}

function isError(text: string): boolean {
  return text.includes('"error":{');
}

function sameContent(one: RobotSent, other: RobotSent): boolean {
  return one.account === other.account && one.body === other.body && one.body.observation_id !== undefined;
}

/** The first event of a whole stream, after its comments. */
function terminalEvent(text: string): string {
  const parts = text.split("\n\n");
  const events = parts.filter((part) => part !== "" && part !== ": processing");
  assert(parts[0] === ": processing" && parts.at(-1) === "", "a stream begins with a comment and ends whole");
  assert(events.at(-1) === "data: [DONE]" && text.split("[DONE]").length === 2, "a stream ends once");
  assert(events.length === (isError(text) ? 2 : 3), "a stream has one outcome");
  return present(events[0]?.slice("data: ".length), "an event");
}

/** After the last reply: nothing is held, nothing ran twice, every memory is that of an episode without faults. */
export async function checkEnd(history: History, clean: KnownModel): Promise<void> {
  const { world, links } = history;
  const { service, clock, models, store } = world;
  assert(world.faults.length === 0, `no fault of our own: ${world.faults.join()}`);
  for (const { index, replies, excused } of history.requests.sent) {
    assert(replies.length === 1 || (excused && replies.length === 0), `#${index} has one terminal reply`);
  }
  assert(clock.armed === 0, "no timer is left");
  assert(service.http.ingress.bytes === 0 && service.robot.replays.size === 0, "no body and no claim is left");
  assert(
    service.robot.admission.held === 0 && service.robot.admission.waiting === 0 && service.robot.forecast.inside === 0,
    "no slot and no place in its queue is left",
  );
  assert(
    models.every(({ open, framesHeld }) => open === 0 && framesHeld === 0),
    "no inference and no frame is left",
  );
  for (const { manifest } of models) {
    const early = service.robot.admission.takeEarly("acct_1", manifest.id, EARLY_FRAMES_MAX);
    assert(early !== undefined, "no early frame slot is left");
    early.release();
  }
  assert(
    links.all.every(({ isThere }) => !isThere),
    "every socket has ended",
  );
  assert(service.socket.sockets.size === 0, "no socket is counted");
  checkSaid(history);
  await checkHolders(history);
  checkExecutions(history);
  await checkMoney(history);
  for (const model of models) await checkMemories(model, history, clean);
  clock.advance(60_000);
  service.robot.sessions.sweep();
  assert(service.robot.sessions.size === 0, "all sessions expire");
  for (const { slots } of service.robot.catalog.models.values()) {
    assert(
      slots === undefined || slots.freeCount === present(models[0], "a model").inner.slots,
      "expiry gives every slot back",
    );
  }
  assert(
    models.every(({ bySlot }) => bySlot.size === 0),
    "expiry drops every memory",
  );
  const ids = store.kept.flatMap(({ observation: kept }) =>
    kept ? [[kept.accountId, kept.model, kept.sessionId, kept.observationId].join()] : [],
  );
  assert(new Set(ids).size === ids.length, "an observation_id is answered once");
}

/** The ledger is sound, nobody holds anything, and what was charged is what was answered or committed for nobody. */
async function checkMoney({ world, requests: { sent } }: History): Promise<void> {
  const { problem } = world.store.report();
  assert(problem === undefined, `the ledger is sound: ${problem}`);
  const accounts = await world.store.accounts.list();
  assert(Array.isArray(accounts) && accounts.every(({ held }) => held === 0n), "no money is held");
  const charged = world.store.kept.map(({ chargeId }) => chargeId);
  const { untold } = world.store;
  const settled = world.store.settled();
  assert(
    settled.toSorted().join() === charged.toSorted().join(),
    `what is charged is what was told as kept, or was found after a kill: ${settled.length} and ${charged.length}`,
  );
  assert(new Set(charged).size === charged.length, "an inference is charged once");
  const committed = world.everyModel.reduce((sum, model) => sum + model.committed.length, 0);
  assert(
    charged.length === committed + untold.length,
    `what is charged is committed, or was on its way at a kill: ${charged.length}, ${committed} and ${untold.length}`,
  );
  for (const { index, replies } of sent) {
    for (const { status, text, generationId, replayed } of replies) {
      const chunk = status === 200 && !isError(text);
      assert(!chunk || charged.includes(generationId ?? ""), `#${index} was charged for what it was answered`);
      // If it was unknown in time whether the record is durable, the answer says so, and a repeat would have it.
      const unknown = /"code":"observation_outcome_unknown"/.test(text);
      assert(chunk || unknown || !charged.includes(generationId ?? ""), `#${index} was charged for nothing`);
      assert(!replayed || chunk, `#${index} replays a chunk`);
    }
  }
}

/** Steps are gapless and monotonic; an observation is executed once; every answer was committed. */
function checkExecutions(history: History): void {
  const steps = new Map<string, number>();
  const marks = new Set<string>();
  for (const model of history.world.everyModel) {
    for (const { observation } of model.committed) {
      const mark = history.markOf(observation.state);
      const { account, session, mayRepeat } = present(history.origins.get(mark), "the origin of a run");
      const once = `${model.manifest.id} ${mark}`;
      assert(mayRepeat || !marks.has(once), `the observation of mark ${mark} is executed once`);
      marks.add(once);
      if (session === undefined) continue;
      const key = [account, model.manifest.id, session].join();
      assert(observation.step === (steps.get(key) ?? 0), `steps of ${key} are gapless`);
      steps.set(key, observation.step + 1);
    }
  }
}

/** Each slot's memory and chunks are those of an episode without faults over what was committed there. */
async function checkMemories(model: GatedModel, history: History, clean: KnownModel): Promise<void> {
  for (const [slot, committed] of model.bySlot) {
    const sessions = committed.map(({ observation }) => {
      const origin = history.origins.get(history.markOf(observation.state));
      return [origin?.account, origin?.session].join();
    });
    assert(new Set(sessions).size === 1, `slot ${slot} belongs to one session`);
    const { frames, digest } = memoryOf(model.inner, slot);
    const expected = await replay(clean, committed);
    assert(
      expected.frames === frames && expected.digest === digest,
      `the memory of slot ${slot} is that of a clean run`,
    );
  }
}

/** Sessions are free: the next client may have one, unless it is over. */
async function checkHolders({ robots, world, links }: History): Promise<void> {
  const { sessions, catalog } = world.service.robot;
  const names = [...robots, ...links.all.map(({ robot, sessionId }) => ({ ...robot, sessionId }))];
  for (const { account, model, sessionId } of names) {
    if (sessionId === undefined) continue;
    const { id } = present(world.models[model], "a model").manifest;
    const name = { accountId: `acct_${account + 1}`, model: id, sessionId };
    const holder = { gone: false, keyId: "", answers: async () => false, takenOver: () => {}, sessionEnded: () => {} };
    const slots = catalog.models.get(id)?.slots;
    const unpayable = async () => undefined;
    const held = await sessions.hold({ ...name, instruction: "fold the towel", holder, slots, unpayable });
    const busy = held instanceof Failure && held.code === "session_busy";
    assert(!busy, `nobody holds session ${sessionId}`);
    if (!(held instanceof Failure)) sessions.release({ ...name, holder }, "stay");
  }
}

async function replay(model: KnownModel, committed: readonly Committed[]) {
  const slot = 0;
  for (const { observation, jpegs, actions } of committed) {
    const frames = jpegs.map((jpeg) => {
      const frame = model.framePut(jpeg, 0);
      assert(!(frame instanceof Fault), "a frame slot is free");
      return frame;
    });
    await Promise.all(frames.map(({ decoded }) => decoded));
    const { failStep: _, ...clean } = observation;
    const run = model.observe({ ...clean, frames, slot });
    assert(!(run instanceof Fault), "a place for an inference is free");
    const result = await run.result;
    assert(!(result instanceof Fault), "an inference without faults gives a chunk");
    const same =
      rowsText(result.actions, result.rows, result.columns) === rowsText(actions, result.rows, result.columns);
    assert(same, `the chunk of step ${observation.step} is that of a clean run`);
    run.commit();
    await run.released;
  }
  const memory = memoryOf(model, slot);
  model.sessionDrop(slot);
  return memory;
}
