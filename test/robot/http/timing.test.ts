/** Times that tell the truth (contract section 2, `timing_ms` and `Server-Timing`), on a clock that moves only when told to. */
import { describe, expect, test } from "bun:test";
import { Drills, readDrills } from "../../../src/drill.ts";
import type { Permit } from "../../../src/robot/admission.ts";
import { type Heard, Peer } from "../socket/peer.ts";
import { MODEL, observation, type Stage, stage } from "../stage.ts";
import { settle } from "./outcome.ts";

/** What the fake model says of every inference, microseconds; the rest is the clock's. */
const MODEL_MICROS = { prefill: 3003, denoise: 4004, encode: 5 };

/** How long the frames had been tensors when the model started, and how long the inference waited for its replica. */
function native(at: Stage, decoded: number, queue: number): void {
  at.engine.script.run = async (run) => ({
    ...at.engine.chunk(run),
    micros: { decoded, queue, ...MODEL_MICROS },
  });
}

/** A step of the way that takes as long as the test says. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  return { wait: () => promise, open: () => resolve(undefined) };
}

async function pass(at: Stage, ms: number): Promise<void> {
  await settle();
  at.clock.advance(ms);
}

/** Other accounts take every frame permit of the model. */
function takeAllFrames({ service }: Stage): () => void {
  const permits = Array.from({ length: 16 }, (_, index) =>
    service.robot.admission.take(index < 13 ? "other" : "third", MODEL, 16),
  ) as Permit[];
  return () => {
    for (const permit of permits) permit.release();
  };
}

function stationsOf(response: Response): Record<string, number> {
  const header = response.headers.get("server-timing") ?? "";
  return Object.fromEntries([...header.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name = "", ms]) => [name, Number(ms)]));
}

const sum = (stations: Record<string, number>) =>
  Math.round(1000 * Object.values(stations).reduce((all, ms) => all + ms, 0)) / 1000;

describe("over HTTP", () => {
  test("admission, hold and replica are queue, decode begins with the body, commit is the wait for durability: the sum is all", async () => {
    const at = await stage();
    const [decode, hold, commit, model] = [gate(), gate(), gate(), gate()];
    const freeFrames = takeAllFrames(at);
    at.engine.script.decode = decode.wait;
    at.store.beforeHold = hold.wait;
    at.store.beforeKeep = commit.wait;
    // Its frames were tensors 5 ms before the money was held, and the inference waited 2 ms for its replica.
    at.engine.script.run = async (run) => {
      await model.wait();
      return { ...at.engine.chunk(run), micros: { decoded: 7000, queue: 2000, ...MODEL_MICROS } };
    };
    const answer = at.chat(observation());
    await pass(at, 30);
    freeFrames();
    await pass(at, 7);
    decode.open();
    await pass(at, 5);
    hold.open();
    // The model, and 1 ms until this thread notices that it has ended.
    await pass(at, 2 + 7.012 + 1);
    model.open();
    await pass(at, 11);
    commit.open();
    const stations = stationsOf(await answer);
    expect(stations).toEqual({ decode: 7, queue: 37, prefill: 3.003, denoise: 4.004, encode: 1.005, commit: 11 });
    expect(sum(stations)).toBe(at.clock.monotonicMs());
  });

  test("a body that is slow to arrive is transport: no station has it", async () => {
    const at = await stage();
    native(at, 0, 0);
    const text = JSON.stringify(observation());
    const sent = gate();
    const body = new ReadableStream({
      async start(stream) {
        stream.enqueue(new TextEncoder().encode(text.slice(0, 100)));
        await sent.wait();
        stream.enqueue(new TextEncoder().encode(text.slice(100)));
        stream.close();
      },
    });
    const answer = at.chat("", { body });
    await pass(at, 100);
    sent.open();
    expect(stationsOf(await answer)).toMatchObject({ decode: 0, queue: 0 });
  });

  test("a drill's delay counts in denoise", async () => {
    const drills = readDrills("slow_model");
    if (!(drills instanceof Drills)) throw new Error("no drill");
    const at = await stage({ drills });
    native(at, 0, 0);
    const answer = at.chat(observation({ session_id: "s" }));
    await pass(at, 2_000);
    const stations = stationsOf(await answer);
    expect(stations).toMatchObject({ queue: 0, denoise: 2004.004, encode: 0.005 });
  });

  test("a replay has the first answer's times and no Server-Timing", async () => {
    const at = await stage();
    const body = observation({ session_id: "s", observation_id: "o" });
    const [first, again] = [await at.chat(body), await at.chat(body)];
    expect([first.headers.has("server-timing"), again.headers.has("server-timing")]).toEqual([true, false]);
    expect(await again.json()).toEqual(await first.json());
  });
});

describe("on a socket", () => {
  const timing = ({ timing_ms }: Heard) => timing_ms as Record<string, number>;

  test("frames that were tensors before their observation came: decode is 0", async () => {
    const at = await stage();
    const one = new Peer(at);
    await one.open();
    one.frames();
    await pass(at, 48);
    native(at, 20_000, 500);
    await one.observe();
    expect(timing(one.last)).toMatchObject({ decode: 0, queue: 0.5 });
  });

  test("frames that are still decoded when it comes: what remains of it is decode", async () => {
    const at = await stage();
    const decode = gate();
    at.engine.script.decode = decode.wait;
    // The engine has the inference from the start: it waits there for its frames.
    native(at, 500, 6_500);
    const one = new Peer(at);
    await one.open();
    one.frames();
    await pass(at, 48);
    await one.observe();
    await pass(at, 6);
    decode.open();
    await settle();
    expect(timing(one.last)).toMatchObject({ decode: 6, queue: 0.5 });
  });

  test("an observation that was sent ahead: its wait for the one before is queue", async () => {
    const at = await stage();
    native(at, 60_000, 0);
    const one = new Peer(at);
    await one.open();
    const first = gate();
    const { run } = at.engine.script;
    at.engine.script.run = async (observed) => {
      if (observed.step === 0) await first.wait();
      return await run(observed);
    };
    await one.act();
    await one.act();
    await pass(at, 50);
    first.open();
    await settle();
    expect(timing(one.last)).toMatchObject({ decode: 0, queue: 50 });
  });
});
