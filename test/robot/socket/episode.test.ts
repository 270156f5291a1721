/** Episodes on a socket: what the contract's section 3 says of messages and their order. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { settle } from "../http/outcome.ts";
import { jointState, jpeg, MODEL, STATEFUL, stage } from "../stage.ts";
import { gate, type Heard, held, ids, NOTHING, Peer, peer } from "./peer.ts";

describe("session.open", () => {
  test("session.opened tells the model's facts; an id is assigned where none was named", async () => {
    const one = await peer();
    expect(await one.open()).toEqual({
      type: "session.opened",
      session_id: expect.stringMatching(/^anon-[0-9A-Za-z]{24}$/),
      model: MODEL,
      step: 0,
      next_frames_per_camera: 1,
      cameras: ["top", "left", "right"],
      rows: 30,
      dt: 1 / 30,
      action_dim: 14,
      action_space: expect.any(String),
    });
  });

  test("what is sent right behind it waits until the session is open", async () => {
    const one = await peer();
    one.episode.receive(JSON.stringify({ type: "session.open", model: MODEL, instruction: "x", session_id: "s" }));
    one.frames();
    one.episode.receive(JSON.stringify({ type: "observation", robot_state: jointState }));
    await settle();
    expect(one.heard.map((message) => (message as Heard).type)).toEqual(["session.opened", "action_chunk"]);
  });

  test("controls of session.open apply to every observation; those of an observation override them", async () => {
    const one = await peer();
    await one.open({ action_horizon: 4, seed: 7 });
    const rows = async (fields: object) => ((await one.act(fields)).actions as unknown[]).length;
    expect([await rows({}), await rows({ action_horizon: 2 }), await rows({ action_horizon: null })]).toEqual([
      4, 2, 4,
    ]);
    expect(one.at.engine.observations.map(({ seed }) => seed)).toEqual([7, 7, 7]);
  });
});

describe("frames", () => {
  test("each is decoded when it arrives, and the observation takes them camera by camera, oldest first", async () => {
    const at = await stage();
    const one = new Peer(at);
    await one.open({ model: STATEFUL, session_id: "s" });
    one.frames([2, 0, 1]);
    expect([at.engine.framesPut, at.engine.framesHeld]).toEqual([3, 3]);
    await one.observe();
    expect(one.last.type).toBe("action_chunk");
    const cameras = [2, 1, 0, 0, 1, 2, 1, 0, 2, 1, 2, 0];
    const files = cameras.map((_, index) => jpeg(64 + index));
    for (const [index, file] of files.entries()) one.frames([cameras[index] ?? 0], file);
    expect(at.engine.framesHeld).toBe(12);
    await one.observe();
    expect(one.last).toMatchObject({ type: "action_chunk", step: 1 });
    expect(held(at)).toEqual(NOTHING);
  });

  test("without a free permit they wait as bytes, and the observation has them decoded", async () => {
    const at = await stage();
    const others = Array.from({ length: 60 }, () => new Peer(at));
    for (const one of others) await one.open();
    for (const one of others) one.frames();
    // Early frames have their part of the permits, and no more.
    expect(at.engine.framesHeld).toBe(LIMITS.accountEarlyFramesMax);
    expect(at.service.http.ingress.bytes).toBeGreaterThan(0);
    for (const one of others.toReversed()) await one.observe();
    expect(new Set(others.map((one) => one.last.type))).toEqual(new Set(["action_chunk"]));
    expect(held(at)).toEqual(NOTHING);
  });
});

describe("observations", () => {
  test("up to eight may wait; they run one after another and are answered in order, with their ids where they have one", async () => {
    const one = await peer();
    await one.open();
    const next = gate(one.at);
    const names = ["a", undefined, "c", "d", "e", "f", "g", "h"];
    for (const id of names) {
      one.frames();
      await one.observe(id === undefined ? {} : { observation_id: id });
    }
    expect(one.heard).toHaveLength(1);
    for (const _ of names) {
      expect(one.at.engine.runsHeld).toBe(1);
      await next();
    }
    expect(ids(one).slice(1)).toEqual(names);
    expect(one.heard.slice(1).map((message) => (message as Heard).step)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(held(one.at)).toEqual(NOTHING);
  });

  test("its text is held in the memory of all requests, in bytes, until it is answered", async () => {
    const one = await peer();
    await one.open();
    const next = gate(one.at);
    const text = JSON.stringify({ type: "observation", robot_state: jointState, note: "機".repeat(1_000) });
    const grown: number[] = [];
    for (let n = 0; n < 2; n += 1) {
      one.frames();
      const { bytes } = one.at.service.http.ingress;
      one.episode.receive(text);
      grown.push(one.at.service.http.ingress.bytes - bytes);
      await settle();
    }
    expect(grown).toEqual([Buffer.byteLength(text), Buffer.byteLength(text)]);
    await next();
    expect(one.at.service.http.ingress.bytes).toBe(Buffer.byteLength(text));
    await next();
    expect(held(one.at)).toEqual(NOTHING);
  });

  test("the time to the model's start counts from the message, also where that waits for its session", async () => {
    const one = await peer();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    one.at.store.robot.sessionLastAt = () => promise as never;
    one.sayOpen({ session_id: "s" });
    one.sayObserve();
    one.at.clock.advance(500);
    resolve(undefined);
    await settle();
    const metrics = await one.at.service.core.metrics.text();
    // And what the engine says that its queue took.
    expect(one.last.type).toBe("action_chunk");
    expect(metrics).toContain('tendon_start_ms_sum{route="episode"} 502.002\n');
  });

  test("an observation_id is answered once: a repeat gets the same chunk with replayed, in either form, and no charge", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    const first = await one.act({ observation_id: "o" });
    one.episode.dropped();
    const f32 = new Peer(one.at);
    await f32.open({ session_id: "s", actions_format: "f32" });
    f32.frames();
    await f32.observe({ observation_id: "o" });
    const { actions, ...fields } = first;
    const flat = Float32Array.from((actions as number[][]).flat());
    expect(f32.heard.slice(-2)).toEqual([{ ...fields, rows: 30, replayed: true } as Heard, 30 * 14 * 4]);
    expect(f32.wire.out.at(-1)).toEqual(new Uint8Array(flat.buffer));
    f32.frames();
    await f32.observe({ observation_id: "p", action_horizon: 2 });
    const [text, bytes] = f32.wire.out.slice(-2) as [string, Uint8Array];
    expect([JSON.parse(text).rows, bytes.length]).toEqual([2, 2 * 14 * 4]);
    f32.episode.dropped();
    const json = new Peer(one.at);
    await json.open({ session_id: "s" });
    json.frames();
    await json.observe({ observation_id: "p", action_horizon: 2 });
    expect(json.last).toMatchObject({
      observation_id: "p",
      step: 1,
      replayed: true,
      actions: (actions as number[][]).slice(0, 2),
    });
    expect((await json.act({ observation_id: "o" })).replayed).toBe(true);
    expect(one.at.store.kept).toHaveLength(2);
  });
});

describe("f32", () => {
  test("a chunk is text without actions, with rows, and then one binary message of little-endian float32, row-major", async () => {
    const one = await peer();
    await one.open({ actions_format: "f32" });
    one.frames();
    await one.observe({ action_horizon: 3 });
    const [text, bytes] = one.wire.out.slice(-2) as [string, Uint8Array];
    const fields = JSON.parse(text) as Heard;
    expect([fields.rows, "actions" in fields, fields.action_dim]).toEqual([3, false, 14]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const values = Array.from({ length: 3 * 14 }, (_, index) => view.getFloat32(index * 4, true));
    expect(values).toEqual(Array.from({ length: 42 }, (_, i) => Math.fround(Math.floor(i / 14) + (i % 14) / 100)));
  });
});
