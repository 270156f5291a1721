/** `/v1/responses` on a real connection: the handshake, Bun's and Elysia's traps, and clients that break the protocol. */
import { describe, expect, test } from "bun:test";
import { listen } from "../../../src/http/listen.ts";
import { LIMITS } from "../../../src/limits.ts";
import { Problem } from "../../../src/std/problem.ts";
import { jointState, jpeg, STATEFUL, type Stage, stage } from "../stage.ts";
import { frame, OPCODE, RawSocket } from "./raw.ts";

type Served = Awaited<ReturnType<typeof serving>>;

async function serving(silentSeconds?: number) {
  const at = await stage(silentSeconds === undefined ? {} : { socketSilentSeconds: silentSeconds });
  const listener = listen(at.app, { host: "127.0.0.1", port: 0 });
  if (listener instanceof Problem) throw new Error(listener.message);
  return { at, url: listener.url, [Symbol.asyncDispose]: () => listener.stop() };
}

const OPEN = { type: "session.open", model: STATEFUL, instruction: "fold the towel" };
const OBSERVE = { type: "observation", robot_state: jointState };

function cameraFrame(camera: number): Buffer {
  return frame(Buffer.concat([Uint8Array.of(camera), jpeg()]), { opcode: OPCODE.binary });
}

const OVER = BigInt(LIMITS.socketPayloadBytesMax + 1);

/** Only the header of a frame with a payload of `length` bytes. */
function head(length: bigint): Buffer {
  return frame("", { opcode: OPCODE.binary, length });
}

/** A connection with an open session. */
async function opened(served: Served, fields: object = {}, step = 0): Promise<RawSocket> {
  const raw = await RawSocket.open(served);
  raw.text({ ...OPEN, ...fields });
  expect(await raw.message()).toMatchObject({ type: "session.opened", step });
  return raw;
}

/** Until the bytes are on their way. */
function written({ socket }: RawSocket, bytes: Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.write(bytes, () => resolve());
  return promise;
}

async function act(raw: RawSocket): Promise<Record<string, unknown> | undefined> {
  for (const camera of [0, 1, 2]) raw.socket.write(cameraFrame(camera));
  raw.text(OBSERVE);
  return await raw.message();
}

/** Until nothing of any connection is left. */
async function empty({ service, engine }: Stage): Promise<void> {
  while (service.socket.sockets.size > 0 || engine.framesHeld > 0 || service.robot.admission.held > 0)
    await Bun.sleep(1);
  expect(service.http.ingress.bytes).toBe(0);
}

describe("handshake", () => {
  test("a missing or wrong key is a plain 401 JSON answer, without an upgrade", async () => {
    await using served = await serving();
    for (const [key, code] of [
      ["none", "invalid_api_key"],
      ["", "missing_api_key"],
    ] as const) {
      const response = await fetch(`${served.url}/v1/responses`, {
        headers: { upgrade: "websocket", connection: "Upgrade", ...(key ? { authorization: `Bearer ${key}` } : {}) },
      });
      expect([response.status, await response.json()]).toMatchObject([401, { error: { code } }]);
    }
  });

  test("a GET that is no handshake is not_found", async () => {
    await using served = await serving();
    const response = await fetch(`${served.url}/v1/responses`, {
      headers: { authorization: `Bearer ${served.at.key}` },
    });
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: "not_found" } }]);
    expect(served.at.service.socket.sockets.size).toBe(0);
  });

  test("the 101 has a request id; there is no subprotocol and no compression, though the client offers them", async () => {
    await using served = await serving();
    const offers =
      "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nSec-WebSocket-Protocol: chat\r\n";
    using raw = await RawSocket.open(served, offers);
    expect(raw.head).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\nx-request-id: req_\w{24,}\r\n/i);
    expect(raw.head).not.toMatch(/sec-websocket-(extensions|protocol)/i);
  });

  test("more connections than an account may have are refused with 503 before the upgrade", async () => {
    const at = await stage();
    const leaves = Array.from({ length: LIMITS.accountSocketsMax }, () => at.service.socket.sockets.enter("acct_1"));
    const response = await at.send("/v1/responses", {
      headers: { authorization: `Bearer ${at.key}`, upgrade: "websocket" },
    });
    expect([response.status, await response.json()]).toMatchObject([503, { error: { code: "engine_unavailable" } }]);
    for (const leave of leaves) if (typeof leave === "function") leave();
    expect(at.service.socket.sockets.size).toBe(0);
  });
});

describe("what Bun and Elysia would do by themselves", () => {
  test("text that looks like a number, a boolean or broken JSON is judged as it was sent", async () => {
    await using served = await serving();
    using raw = await RawSocket.open(served);
    const codes: unknown[] = [];
    for (const text of ["123", "true", "null", "{broken", '"x"', ""]) {
      raw.socket.write(frame(text, { opcode: OPCODE.text }));
      codes.push((await raw.message())?.code);
    }
    expect(codes).toEqual([
      "invalid_body",
      "invalid_body",
      "invalid_body",
      "invalid_json",
      "invalid_body",
      "invalid_json",
    ]);
  });

  test("frames provoke no message; what is said comes as text, f32 rows as one binary message, and nothing twice", async () => {
    await using served = await serving();
    using raw = await opened(served, { actions_format: "f32" });
    raw.socket.write(cameraFrame(0));
    raw.socket.write(frame("", { opcode: OPCODE.binary }));
    for (const camera of [1, 2]) raw.socket.write(cameraFrame(camera));
    raw.text(OBSERVE);
    raw.text({ type: "session.close" });
    const heard: unknown[] = [];
    for (let got = await raw.next(); got; got = await raw.next()) {
      const { opcode, payload } = got;
      if (opcode === OPCODE.text) heard.push(JSON.parse(payload.toString()).type);
      else heard.push(opcode === OPCODE.binary ? payload.length : payload.readUInt16BE(0));
    }
    expect(heard).toEqual(["error", "action_chunk", 24 * 14 * 4, "session.closed", 1000]);
  });

  test("a text of 65,536 characters is read, whatever their bytes; one more is message_too_large", async () => {
    await using served = await serving();
    using raw = await opened(served);
    const codes: unknown[] = [];
    for (const chars of [LIMITS.socketTextCharsMax, LIMITS.socketTextCharsMax + 1]) {
      raw.socket.write(frame(`"${"😀".repeat(chars - 2)}"`, { opcode: OPCODE.text }));
      codes.push(await raw.message());
    }
    expect(codes).toMatchObject([
      { code: "invalid_body", closing: false },
      { code: "message_too_large", closing: false },
    ]);
    expect(await act(raw)).toMatchObject({ type: "action_chunk" });
  });

  for (const [name, most, bytes] of [
    ["128 messages", LIMITS.socketPendingMessagesMax, 64],
    ["16 MiB", 63, LIMITS.jpegBytesMax],
  ] as const) {
    test(`${name} may wait for their observation; with the next message they are message_too_large, 1008`, async () => {
      await using served = await serving();
      const raw = await opened(served);
      const file = frame(Buffer.concat([Uint8Array.of(0), jpeg(bytes)]), { opcode: OPCODE.binary });
      for (let n = 0; n < most; n += 1) raw.socket.write(file);
      // Messages are answered in their order: nothing was wrong so far. A refused frame leaves the pending ones as they are.
      raw.socket.write(frame("", { opcode: OPCODE.binary }));
      expect(await raw.message()).toMatchObject({ code: "invalid_frame" });
      raw.socket.write(file);
      expect(await raw.message()).toMatchObject({ code: "message_too_large", closing: true });
      expect(await raw.closed()).toBe(1008);
      raw.socket.destroy();
      await empty(served.at);
    });
  }

  // The shortest time that Bun can be told; it asks four seconds after the last sign of life.
  test("a client that is silent is asked by a ping", async () => {
    await using served = await serving(8);
    using raw = await opened(served);
    expect((await raw.next())?.opcode).toBe(OPCODE.ping);
  });
});

describe("clients that break the protocol neither stop the server nor keep a slot", () => {
  /** `code`: what the client is told; undefined: its connection is gone. */
  const abuses: [name: string, code: number | undefined, abuse: (raw: RawSocket) => void][] = [
    ["a frame without a mask", 1002, (raw) => raw.socket.write(frame("{}", { opcode: OPCODE.text, masked: false }))],
    ["reserved bits", 1002, (raw) => raw.socket.write(frame("{}", { opcode: OPCODE.text, reserved: 5 }))],
    ["an opcode that is none", 1002, (raw) => raw.socket.write(frame("{}", { opcode: 5 }))],
    ["a control frame in parts", 1002, (raw) => raw.socket.write(frame("x", { opcode: OPCODE.ping, final: false }))],
    ["a ping of 126 bytes", 1002, (raw) => raw.socket.write(frame(Buffer.alloc(126), { opcode: OPCODE.ping }))],
    ["a continuation of nothing", 1002, (raw) => raw.socket.write(frame("x", { opcode: OPCODE.more }))],
    ["no UTF-8", 1007, (raw) => raw.socket.write(frame(Buffer.from([0xc3, 0x28]), { opcode: OPCODE.text }))],
    ["a length of 2^63 − 1", 1009, (raw) => raw.socket.write(head(2n ** 63n - 1n))],
    ["a message over 1 MiB, by its header", 1009, (raw) => raw.socket.write(head(OVER))],
    [
      "a message over 1 MiB",
      1009,
      (raw) => raw.socket.write(frame(Buffer.alloc(Number(OVER)), { opcode: OPCODE.binary })),
    ],
    [
      "parts without an end, over 1 MiB",
      1009,
      (raw) => {
        raw.socket.write(frame(Buffer.alloc(65_536), { opcode: OPCODE.binary, final: false }));
        const more = { opcode: OPCODE.more, final: false };
        for (let n = 1; n < 16; n += 1) raw.socket.write(frame(Buffer.alloc(65_536), more));
        raw.socket.write(frame("x", more));
      },
    ],
    ["a close with half a code", 1002, (raw) => raw.socket.write(frame(Buffer.from([3]), { opcode: OPCODE.close }))],
    [
      "a close with a code that is none",
      1002,
      (raw) => raw.socket.write(frame(Buffer.from([0, 1]), { opcode: OPCODE.close })),
    ],
    ["HTTP in the middle", 1002, (raw) => raw.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n")],
    ["half a frame, then nothing more", undefined, (raw) => raw.socket.end(cameraFrame(0).subarray(0, 20))],
    [
      "half-closed behind an observation",
      undefined,
      (raw) => {
        for (const camera of [1, 2]) raw.socket.write(cameraFrame(camera));
        raw.text(OBSERVE);
        raw.socket.end();
      },
    ],
    ["a reset", undefined, (raw) => raw.socket.resetAndDestroy()],
  ];
  for (const [name, code, abuse] of abuses) {
    test(`${name}: ${code ?? "gone"}`, async () => {
      await using served = await serving();
      const raw = await opened(served);
      raw.socket.write(cameraFrame(0));
      abuse(raw);
      expect(await raw.closed()).toBe(code);
      raw.socket.destroy();
      await empty(served.at);
      // A session that had a chunk may be resumed for a minute.
      served.at.clock.advance(LIMITS.sessionIdleMs);
      served.at.service.robot.sessions.sweep();
      expect(served.at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount).toBe(4);
      using next = await opened(served);
      expect(await act(next)).toMatchObject({ type: "action_chunk" });
    }, 20_000);
  }

  test("a message in parts, with pings between them, is one message", async () => {
    await using served = await serving();
    using raw = await opened(served);
    const whole = Buffer.concat([Uint8Array.of(0), jpeg(3_000)]);
    raw.socket.write(frame(whole.subarray(0, 1), { opcode: OPCODE.binary, final: false }));
    raw.socket.write(frame("p", { opcode: OPCODE.ping }));
    raw.socket.write(frame(whole.subarray(1, 1_000), { opcode: OPCODE.more, final: false }));
    raw.socket.write(frame(whole.subarray(1_000), { opcode: OPCODE.more }));
    for (const camera of [1, 2]) raw.socket.write(cameraFrame(camera));
    raw.text(OBSERVE);
    expect(await raw.message()).toMatchObject({ type: "action_chunk" });
  });

  test("a connection that is cut between two messages or inside one leaves its session at its step", async () => {
    await using served = await serving();
    const resume = (step: number) => opened(served, { session_id: "s" }, step);
    // Before a message, inside its head, behind that, in the middle, and before its last byte.
    const inside = (length: number) => [0, 1, 6, length >> 1, length - 1];
    for (const [step, cameras] of [
      [0, 1, 2],
      [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2],
    ].entries()) {
      const messages = [...cameras.map(cameraFrame), frame(JSON.stringify(OBSERVE), { opcode: OPCODE.text })];
      const whole = Buffer.concat(messages);
      const starts = messages.map((_, index) => Buffer.concat(messages.slice(0, index)).length);
      const cuts = messages.flatMap(({ length }, index) => inside(length).map((at) => (starts[index] ?? 0) + at));
      for (const [number, cut] of cuts.entries()) {
        const raw = await resume(step);
        await written(raw, whole.subarray(0, cut));
        if (number % 2 === 0) raw.socket.end();
        else raw.socket.resetAndDestroy();
        await raw.closed();
        raw.socket.destroy();
        await empty(served.at);
      }
      const raw = await resume(step);
      raw.socket.write(whole);
      expect(await raw.message()).toMatchObject({ type: "action_chunk", step });
      raw.socket.destroy();
      await empty(served.at);
    }
  }, 20_000);

  for (const reads of [true, false]) {
    test(`floods of pings from a client that reads ${reads ? "its pongs" : "nothing"} do not keep another robot from its chunk`, async () => {
      await using served = await serving();
      const [flood, robot] = [await opened(served), await opened(served)];
      if (!reads) flood.socket.pause();
      const ping = frame(Buffer.alloc(125), { opcode: OPCODE.ping });
      // 13 MB of pongs for a client that does not read: more than lies between the two ends.
      const pings = Buffer.concat(Array.from({ length: 10_000 }, () => ping));
      for (let n = 0; n < (reads ? 1 : 10); n += 1) await written(flood, pings);
      expect(await act(robot)).toMatchObject({ type: "action_chunk" });
      if (reads) expect(await act(flood)).toMatchObject({ type: "action_chunk" });
      for (const raw of [flood, robot]) raw.socket.destroy();
      await empty(served.at);
    });
  }

  for (const reads of [true, false]) {
    const how = reads ? "told 1013 when it reads again" : "cut off after a while";
    test(`a client that does not read is ${how} once 1 MiB waits for it, and its session is free again`, async () => {
      await using served = await serving();
      const raw = await opened(served, { session_id: "s" });
      raw.socket.pause();
      // Errors are answers as well: each of some hundred bytes.
      const bad = frame("{", { opcode: OPCODE.text });
      const many = Buffer.concat(Array.from({ length: 2_000 }, () => bad));
      const { logLines, service, clock } = served.at;
      while (service.socket.sockets.size > 0 && !logLines.some((line) => line.includes("does not read"))) {
        await written(raw, many);
      }
      expect(logLines.join()).toContain("the client does not read");
      if (reads) {
        raw.socket.resume();
        expect(await raw.closed()).toBe(1013);
      } else clock.advance(LIMITS.socketCloseMs);
      await empty(served.at);
      raw.socket.destroy();
      using _next = await opened(served, { session_id: "s" });
    }, 30_000);
  }
});
