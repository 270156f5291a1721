/**
 * The observations around a fault are answered, dropped without a trace, or kept for a repeat; and nothing that was not answered
 * is paid.
 */
import { describe, expect, test } from "bun:test";
import { keyPublicId } from "../../../src/account/key.ts";
import { readDrills } from "../../../src/drill.ts";
import { Fault as EngineFault } from "../../../src/engine/fault.ts";
import { LIMITS } from "../../../src/limits.ts";
import { Problem } from "../../../src/std/problem.ts";
import { settle } from "../http/outcome.ts";
import { jointState, jpeg, type stage } from "../stage.ts";
import { gate, type Heard, held, ids, leave, money, NOTHING, Peer, peer } from "./peer.ts";

/** What is at fault in the second of three observations that are sent at once. */
interface Row {
  readonly code: string;
  readonly fields?: object;
  readonly frames?: readonly number[];
  /** The bytes of each of its frames. */
  readonly file?: Uint8Array;
  /** The close code; undefined: `closing` is false. */
  readonly close?: number;
  /** Called before the observations are sent. */
  readonly before?: (one: Peer) => void | Promise<void>;
  /** A drill that strikes at the second chunk. */
  readonly drill?: string;
  /** The error cannot name it. */
  readonly unnamed?: true;
  /** The session is at its first chunk: nothing was answered before. */
  readonly first?: true;
  /** The model worked on it. */
  readonly ran?: true;
  /** The account comes to no session any more. */
  readonly barred?: true;
  /** The error says when to try again. */
  readonly retry?: true;
  readonly message?: RegExp;
}

/** Files of this size are none for the decoder. */
const BROKEN = jpeg(70);

function breakDecoder({ at: { engine } }: Peer): void {
  const { decode } = engine.script;
  engine.script.decode = async (file) =>
    file.length === BROKEN.length ? new EngineFault("bad_image", "no JPEG") : await decode(file);
}

const ROWS: readonly Row[] = [
  { code: "image_count_mismatch", frames: [0, 1] },
  { code: "image_count_mismatch", frames: [0, 1, 2, 2] },
  { code: "image_count_mismatch", frames: [0, 1, 1] },
  { code: "image_count_mismatch", frames: [] },
  { code: "invalid_parameter", fields: { deadline_ms: "soon", robot_state: undefined } },
  { code: "state_missing", fields: { robot_state: undefined } },
  { code: "state_shape_mismatch", fields: { robot_state: { joint_position: [1], gripper_position: [0, 0] } } },
  { code: "action_horizon_invalid", fields: { action_horizon: "x" } },
  { code: "action_horizon_out_of_range", fields: { action_horizon: 0 } },
  { code: "num_inference_steps_invalid", fields: { num_inference_steps: "x" } },
  { code: "num_inference_steps_out_of_range", fields: { num_inference_steps: 5 } },
  { code: "invalid_expected_step", fields: { expected_step: -1 } },
  { code: "session_step_conflict", fields: { expected_step: 7 } },
  { code: "invalid_image", fields: { robot_state: { ...jointState, gripper_position: [2, 0] } } },
  {
    code: "invalid_image",
    fields: { robot_state: { ...jointState, gripper_position: [2, 0] } },
    close: 1008,
    first: true,
  },
  { code: "invalid_image", file: BROKEN, before: breakDecoder, message: /^camera 0, frame 0: no JPEG; / },
  { code: "invalid_image", file: BROKEN, before: breakDecoder, close: 1008, first: true },
  { code: "invalid_observation_id", fields: { observation_id: "ü" }, close: 1008, unnamed: true },
  { code: "invalid_observation_id", fields: { observation_id: "x".repeat(129) }, close: 1008, unnamed: true },
  { code: "invalid_observation_id", fields: { observation_id: 5 }, close: 1008, unnamed: true },
  {
    code: "idempotency_conflict",
    close: 1008,
    before: async (one) => {
      await one.act({ observation_id: "fault", action_horizon: 3 });
    },
  },
  {
    code: "spend_limit_exceeded",
    close: 1008,
    before: async ({ at }) => {
      await at.store.accounts.spendLimit({ accountId: "acct_1", limit: CHUNK + CHUNK / 2n });
    },
    barred: true,
  },
  { code: "insufficient_credit", close: 1008, before: ({ at }) => leave(at, CHUNK + CHUNK / 2n), barred: true },
  { code: "payment_required", close: 1008, before: ({ at }) => leave(at, CHUNK), barred: true },
  { code: "metering_unavailable", close: 1008, drill: "metering_unavailable", retry: true },
  { code: "billing_unavailable", close: 1008, drill: "billing_unavailable", retry: true },
  {
    code: "model_failure",
    close: 1011,
    ran: true,
    before: ({ at: { engine } }) => {
      engine.script.run = async (run) => (run.step === 1 ? engine.fault("no") : engine.chunk(run));
    },
  },
  { code: "engine_protocol_error", close: 1011, ran: true, before: (one) => misshape(one, { columns: 7 }) },
  { code: "engine_protocol_error", close: 1011, ran: true, before: (one) => misshape(one, { rows: 29 }) },
  {
    code: "observation_outcome_unknown",
    close: 1008,
    drill: "result_lost",
    before: async (one) => {
      await one.act();
      await one.act({ observation_id: "fault" });
    },
  },
  { code: "engine_unavailable", close: 1011, drill: "engine_unavailable" },
  {
    code: "auth_unavailable",
    close: 1008,
    retry: true,
    before: ({ at: { service } }) => {
      let asked = 0;
      service.core.drills.strikes = (name) => {
        if (name === "auth_unavailable") asked += 1;
        return name === "auth_unavailable" && asked === 2;
      };
    },
  },
  {
    code: "invalid_api_key",
    close: 1008,
    barred: true,
    before: ({ at }) => {
      at.engine.script.run = async (run) => {
        await at.store.accounts.keyRevoke({ publicId: keyPublicId(at.key) ?? "", at: 1 });
        await at.service.core.keys.refresh();
        return at.engine.chunk(run);
      };
    },
  },
];

/** The second chunk has not the model's shape. */
function misshape({ at: { engine } }: Peer, wrong: object): void {
  engine.script.run = async (run) => ({ ...engine.chunk(run), ...(run.step === 1 ? wrong : {}) });
}

/** What a chunk costs at the stage's rates, and what is held for it: 100 tokens and 30 rows. */
const CHUNK = 100n * 1_000n + 30n * 1_000_000n;

describe("observations at fault between two others that are sent with them", () => {
  for (const row of ROWS) {
    const how =
      row.close === undefined ? "closing false, the others run" : `closing, ${row.close}, the next is dropped`;
    test(`${row.code} ${JSON.stringify(row.fields ?? row.frames ?? "")}: ${how}`, async () => {
      const drills = row.drill === undefined ? undefined : readDrills(`${row.drill}:s@1`);
      if (drills instanceof Problem) throw new Error(drills.message);
      const one = await peer(drills ? { drills } : {});
      await one.open({ session_id: "s" });
      await row.before?.(one);
      const [heardBefore, ranBefore] = [one.heard.length, one.at.engine.observations.length];
      if (!row.first) one.sayObserve({ observation_id: "before" });
      one.sayObserve({ observation_id: "fault", ...row.fields }, row.frames, row.file);
      one.sayObserve({ observation_id: "after" });
      await settle();
      const heard = one.heard.slice(heardBefore) as { type: string; observation_id?: string }[];
      const error = {
        type: "error",
        code: row.code,
        message: expect.stringMatching(row.message ?? /./),
        closing: row.close !== undefined,
        ...(row.unnamed ? {} : { observation_id: "fault" }),
        ...(row.retry ? { retry_after: expect.any(Number) } : {}),
        // The one behind it.
        ...(row.close === undefined ? {} : { dropped: 1 }),
      };
      const right = [...(row.first ? [] : ["before"]), ...(row.close === undefined ? ["after"] : [])];
      const answers = right.map((id) => expect.objectContaining({ type: "action_chunk", observation_id: id }));
      expect(heard).toEqual(answers.toSpliced(row.first ? 0 : 1, 0, error));
      expect([one.closed, one.ended]).toEqual([row.close, row.close !== undefined]);
      // What is dropped never ran, and nothing but what was answered is paid.
      const { engine, store } = one.at;
      expect(engine.observations.length - ranBefore).toBe(right.length + (row.ran ? 1 : 0));
      const answered = (one.heard as Heard[]).filter(({ type }) => type === "action_chunk").length;
      expect(store.kept).toHaveLength(answered);
      expect(await money(one.at)).toEqual({ paid: BigInt(answered) * CHUNK, held: 0n });
      expect(held(one.at)).toEqual(NOTHING);
      if (row.close === undefined) return;
      const next = new Peer(one.at);
      if (row.barred) {
        expect(await next.open({ session_id: "s" })).toMatchObject({ type: "error", code: row.code, closing: true });
        return;
      }
      // The session is at its step, for the next connection.
      expect(await next.open({ session_id: "s" })).toMatchObject({ type: "session.opened", step: answered });
    });
  }
});

/** Faults of messages while `running` runs and `queued` waits behind it. */
interface Fault {
  readonly name: string;
  readonly code: string;
  readonly send: (one: Peer) => void;
  readonly close?: number;
  /** The error is about this observation. */
  readonly id?: string;
  /** It is a text, with which pending frames are dropped. */
  readonly text?: true;
  /** Observations that get no answer, where it is not the queued one alone. */
  readonly dropped?: number;
  readonly stage?: Parameters<typeof stage>[0];
}

const LONG = `"${"x".repeat(LIMITS.socketTextCharsMax)}"`;

const says = (text: string) => (one: Peer) => one.episode.receive(text);
const shows = (camera: number, file: Uint8Array) => (one: Peer) => one.frames([camera], file);

const FAULTS: readonly Fault[] = [
  { name: "no JSON", code: "invalid_json", send: says("{"), text: true },
  { name: "a list", code: "invalid_body", send: says("[1]"), text: true },
  { name: "no type", code: "type_missing", send: says("{}"), text: true },
  { name: "another type", code: "unknown_type", send: says('{"type":"x"}'), text: true },
  { name: "too long a text", code: "message_too_large", send: says(LONG), text: true },
  { name: "a second session", code: "session_open", send: (one) => one.sayOpen({ session_id: "t" }), text: true },
  { name: "an empty frame", code: "invalid_frame", send: (one) => one.episode.receive(new Uint8Array(0)) },
  { name: "a frame of two bytes", code: "invalid_frame", send: shows(0, Uint8Array.of(0xff, 0xd8)) },
  { name: "a frame of no camera", code: "invalid_camera", send: shows(3, jpeg()) },
  { name: "a frame of camera 255", code: "invalid_camera", send: shows(255, jpeg()) },
  { name: "too large a frame", code: "image_too_large", send: shows(0, jpeg(LIMITS.jpegBytesMax + 1)) },
  { name: "a frame that is no JPEG", code: "unsupported_image_format", send: shows(0, new Uint8Array(9)) },
  {
    name: "129 messages that nobody has taken",
    code: "message_too_large",
    close: 1008,
    send: (one) => one.frames(Array(LIMITS.socketPendingMessagesMax).fill(0)),
  },
  {
    name: "more than 16 MiB that nobody has taken",
    code: "message_too_large",
    close: 1008,
    send: (one) => one.frames(Array(64).fill(0), jpeg(LIMITS.jpegBytesMax)),
  },
  {
    name: "a ninth observation",
    code: "too_many_observations",
    close: 1008,
    id: "n6",
    dropped: 7,
    send: (one) => {
      for (let n = 0; n < 7; n += 1) one.sayObserve({ observation_id: `n${n}` });
    },
  },
  {
    name: "an observation without room for its text",
    code: "engine_unavailable",
    close: 1011,
    id: "long",
    stage: { ingressBytesMax: 8_000 },
    send: (one) => one.sayObserve({ observation_id: "long", note: "x".repeat(6_000) }),
  },
  {
    name: "a fault of our own",
    code: "internal_error",
    close: 1011,
    send: (one) => {
      one.at.engine.script.framePut = () => {
        throw new Error("assertion failed: a test");
      };
      one.frames([0]);
    },
  },
];

describe("messages at fault while one observation runs and another waits", () => {
  for (const { name, code, send, close, id, text, dropped = 1, stage: options } of FAULTS) {
    const goesOn = `closing false, both are answered, pending frames ${text ? "go" : "stay"}`;
    const how = close === undefined ? goesOn : `closing, ${close}, what runs is kept`;
    test(`${code}, ${name}: ${how}`, async () => {
      const one = await peer(options);
      await one.open({ session_id: "s" });
      const next = gate(one.at);
      for (const id of ["running", "queued"]) one.sayObserve({ observation_id: id });
      await settle();
      // Pending for the observation after them.
      one.frames([0, 1]);
      send(one);
      const error = {
        type: "error",
        code,
        message: expect.any(String),
        closing: close !== undefined,
        ...(id === undefined ? {} : { observation_id: id }),
        ...(close === undefined ? {} : { dropped }),
      };
      expect([one.heard.slice(1), one.closed]).toEqual([[error], close]);
      await next();
      if (close === undefined) {
        await next();
        one.sayObserve({ observation_id: "after" }, text ? [0, 1, 2] : [2]);
        await settle();
        await next();
        expect(ids(one).slice(2)).toEqual(["running", "queued", "after"]);
        expect((one.heard.slice(2) as Heard[]).map(({ type }) => type)).toEqual(Array(3).fill("action_chunk"));
        expect([await money(one.at), held(one.at)]).toEqual([{ paid: 3n * CHUNK, held: 0n }, NOTHING]);
        return;
      }
      expect([one.heard.length, one.at.engine.observations.length, one.at.store.kept.length]).toEqual([2, 1, 1]);
      expect([await money(one.at), held(one.at)]).toEqual([{ paid: CHUNK, held: 0n }, NOTHING]);
      one.at.engine.script.framePut = () => undefined;
      const again = new Peer(one.at);
      expect(await again.open({ session_id: "s" })).toMatchObject({ type: "session.opened", step: 1 });
      for (const id of ["running", "queued"]) again.sayObserve({ observation_id: id });
      await settle();
      await next();
      expect(again.heard.slice(1)).toMatchObject([
        { type: "action_chunk", observation_id: "running", step: 0, replayed: true },
        { type: "action_chunk", observation_id: "queued", step: 1 },
      ]);
      expect(await money(one.at)).toEqual({ paid: 2n * CHUNK, held: 0n });
    });
  }
});
