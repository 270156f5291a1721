import { expect, test } from "bun:test";
import type { ServerWebSocket } from "bun";
import { frameMessage } from "../../src/client/episode-messages.ts";
import { EpisodeSocket } from "../../src/client/episode-socket.ts";
import { LIMITS } from "../../src/limits.ts";
import type { Clock } from "../../src/std/clock.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { FakeClock } from "../std/fake-clock.ts";

const OPENED = {
  ...{ type: "session.opened", session_id: "s", model: "a/b", step: 0, next_frames_per_camera: 1 },
  ...{ cameras: ["top"], rows: 2, dt: 1 / 30, action_dim: 3, action_space: "joint_position" },
};
const CHUNK = {
  ...{ type: "action_chunk", id: "gen_1", usage: { total_tokens: 1 } },
  ...{ session_id: "s", step: 0, dt: 1 / 30, action_dim: 3, action_space: "joint_position" },
  ...{ next_frames_per_camera: 1, timing_ms: { decode: 1, queue: 0, prefill: 0, denoise: 0, encode: 0 } },
};
const OPENING = { model: "a/b", instruction: "go" };

type Wire = ServerWebSocket<undefined>;
/** Answers each text message of a client by its type. */
type Script = Readonly<Record<string, (wire: Wire) => unknown>>;

class Service implements AsyncDisposable {
  readonly heard: (string | Uint8Array)[] = [];
  private readonly server: ReturnType<typeof Bun.serve>;

  constructor(script: Script, onClose: (code: number) => void = () => {}) {
    this.server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request, server) {
        if (request.headers.get("authorization") !== "Bearer good") {
          return Response.json({ error: { code: "invalid_api_key", message: "no such key" } }, { status: 401 });
        }
        if (server.upgrade(request, { data: undefined })) return undefined;
        return Response.json({ error: { code: "not_found", message: "no such route" } }, { status: 404 });
      },
      websocket: {
        close: (_wire: Wire, code: number) => onClose(code),
        message: (wire: Wire, message) => {
          this.heard.push(message);
          if (typeof message === "string") script[(JSON.parse(message) as { type: string }).type]?.(wire);
        },
      },
    });
  }

  at(apiKey = "good") {
    return { url: `http://127.0.0.1:${this.server.port}`, apiKey };
  }

  async opened(format: "json" | "f32" = "json", clock?: Clock): Promise<EpisodeSocket> {
    const socket = await EpisodeSocket.connect(this.at(), clock);
    if (socket instanceof Problem) throw new Error(socket.message);
    expect(await socket.open({ ...OPENING, format })).toMatchObject({ session_id: "s", step: 0, cameras: ["top"] });
    return socket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop(true);
  }
}

const say = (message: object) => (wire: Wire) => {
  wire.send(JSON.stringify(message));
};
const open = { "session.open": say(OPENED) };

test("an episode: session.open, frames, observation, session.close; the chunk is the one that HTTP would have given", async () => {
  const actions = [
    [0.1, 2, 3],
    [4, 5, 6],
  ];
  await using service = new Service({
    ...open,
    observation: say({ ...CHUNK, actions }),
    "session.close": (wire) => {
      wire.send(JSON.stringify({ type: "session.closed", reason: "session_close" }));
      wire.close(1000);
    },
  });
  const socket = await service.opened();
  socket.frame(frameMessage(1, Uint8Array.of(0xff, 0xd8, 0xff)));
  const chunk = await socket.observe({ robot_state: { a: 1 } });
  const { type: _type, id: _id, usage: _usage, ...rest } = CHUNK;
  expect(chunk).toEqual({ ...rest, actions } as never);
  expect(await socket.close()).toBeUndefined();
  expect(service.heard.map((one) => (typeof one === "string" ? (JSON.parse(one) as object) : [...one]))).toEqual([
    { type: "session.open", actions_format: "json", ...OPENING },
    [1, 0xff, 0xd8, 0xff],
    { type: "observation", robot_state: { a: 1 } },
    { type: "session.close" },
  ]);
});

test("with f32 the rows come as bytes; bytes that do not fit end the episode", async () => {
  const values = Float32Array.of(1, 2, 3, 4, 5, 0.5);
  let bytes = new Uint8Array(values.buffer);
  await using service = new Service({
    ...open,
    observation: (wire) => {
      say({ ...CHUNK, rows: 2 })(wire);
      wire.send(bytes);
    },
  });
  const socket = await service.opened("f32");
  const rows = [
    [1, 2, 3],
    [4, 5, 0.5],
  ];
  expect(await socket.observe({})).toMatchObject({ actions: rows, step: 0 });
  bytes = bytes.slice(4);
  expect(await socket.observe({})).toMatchObject({ message: expect.stringContaining("not the rows of a chunk") });
});

test("an error that closes is told with its code, its message and the close code, and once more by every later call", async () => {
  await using service = new Service({
    ...open,
    observation: (wire) => {
      say({ type: "error", code: "session_expired", message: "the session has ended", closing: true })(wire);
      wire.close(1008, "session_expired");
    },
  });
  const socket = await service.opened();
  const both = await Promise.all([socket.observe({}), socket.observe({})]);
  const told = "session_expired: the session has ended (the connection was closed with code 1008)";
  for (const problem of [...both, await socket.observe({}), await socket.close()]) {
    expect(problem).toMatchObject({ message: told, exit: EXIT.failed });
  }
  expect(service.heard.length).toBeLessThanOrEqual(3);
});

test("an error that does not close ends the episode too: nothing is repeated", async () => {
  const refused = { type: "error", code: "state_missing", message: "robot_state is missing", closing: false };
  await using service = new Service({ ...open, observation: say(refused) });
  const socket = await service.opened();
  const told = { message: "state_missing: robot_state is missing", exit: EXIT.failed };
  expect(await socket.observe({})).toMatchObject(told);
  expect(await socket.observe({})).toMatchObject(told);
  expect(service.heard).toHaveLength(2);
});

test("close after a refusal still ends the session, so that its slot is free; leave does not", async () => {
  const refused = { type: "error", code: "state_missing", message: "robot_state is missing", closing: false };
  const codes: number[] = [];
  await using service = new Service({ ...open, observation: say(refused) }, (code) => codes.push(code));
  for (const [end, last] of [
    [(socket: EpisodeSocket) => socket.close(), { type: "session.close" }],
    [(socket: EpisodeSocket) => socket.leave(), { type: "observation" }],
  ] as const) {
    const socket = await service.opened();
    await socket.observe({});
    await end(socket);
    expect(JSON.parse(String(service.heard.at(-1)))).toEqual(last);
  }
  expect(codes).toEqual([1000, 1000]);
});

test("a call that waits when the client leaves is told so at once; a refused key exits with 3", async () => {
  const revoked = { type: "error", code: "invalid_api_key", message: "revoked", closing: true };
  await using service = new Service({
    ...open,
    "session.close": (wire) => {
      say(revoked)(wire);
      wire.close(1008);
    },
  });
  const socket = await service.opened();
  const waiting = socket.observe({});
  await socket.leave();
  expect(await waiting).toMatchObject({ message: "this client has closed the connection" });
  expect(await (await service.opened()).close()).toMatchObject({ exit: EXIT.notSignedIn });
});

test("a connection that ends without words is told with its close code", async () => {
  for (const [end, told] of [
    [(wire: Wire) => wire.close(1013, "too slow"), "closed with code 1013 (too slow)"],
    [(wire: Wire) => wire.terminate(), "broke off (1006)"],
    [
      (wire: Wire) => {
        say({ type: "session.closed", reason: "shutdown" })(wire);
        wire.close(1001);
      },
      "the service ended the session: shutdown (the connection was closed with code 1001)",
    ],
  ] as const) {
    await using service = new Service({ ...open, observation: end });
    const socket = await service.opened();
    expect(await socket.observe({})).toMatchObject({ message: expect.stringContaining(told) });
  }
});

test("only an open session is told to be kept, with the id to go on with it", async () => {
  const end = (wire: Wire) => wire.close(1009);
  await using service = new Service({ ...open, observation: end });
  const socket = await service.opened();
  const kept = expect.stringContaining("session 's' for a minute: connect again with that id");
  expect(await socket.observe({})).toMatchObject({ message: kept, exit: EXIT.unreachable });
  await using early = new Service({ "session.open": end });
  const unopened = await EpisodeSocket.connect(early.at());
  if (unopened instanceof Problem) throw new Error(unopened.message);
  const refused = await unopened.open({ ...OPENING, format: "json" });
  expect(refused).toMatchObject({ message: expect.stringContaining("code 1009; no session was open") });
});

test("observations sent ahead are answered one after another: the time of each begins when it is the next", async () => {
  const clock = new FakeClock();
  const wires: Wire[] = [];
  await using service = new Service({ ...open, observation: (wire) => wires.push(wire) });
  const socket = await service.opened("json", clock);
  const [first, second] = [socket.observe({ n: 1 }), socket.observe({ n: 2 })];
  while (wires.length < 2) await Bun.sleep(1);
  clock.advance(LIMITS.clientAnswerMs - 1);
  say({ ...CHUNK, actions: [[1, 2, 3]] })(wires[0] as Wire);
  expect(await first).toMatchObject({ step: 0 });
  clock.advance(LIMITS.clientAnswerMs - 1);
  let settled = false;
  const watched = second.then((answer) => {
    settled = true;
    return answer;
  });
  await Bun.sleep(1);
  expect(settled).toBe(false);
  clock.advance(1);
  expect(await watched).toMatchObject({ message: expect.stringContaining("did not answer 'observation' within") });
});

test("a handshake that is refused is told in the service's words; nobody there exits with 4", async () => {
  await using service = new Service({});
  const refused = await EpisodeSocket.connect(service.at("bad"));
  expect(refused).toMatchObject({ message: "invalid_api_key: no such key", exit: EXIT.notSignedIn });
  expect(await EpisodeSocket.connect(service.at("b d"))).toMatchObject({ exit: EXIT.notSignedIn });
  const nobody = Bun.serve({ port: 0, fetch: () => new Response("") });
  const port = nobody.port;
  await nobody.stop(true);
  const unreachable = await EpisodeSocket.connect({ url: `http://127.0.0.1:${port}`, apiKey: "k" });
  expect(unreachable).toMatchObject({ exit: EXIT.unreachable });
  await using plain = Bun.serve({ port: 0, fetch: () => new Response("hello") });
  const page = await EpisodeSocket.connect({ url: `http://127.0.0.1:${plain.port}`, apiKey: "k" });
  expect(page).toMatchObject({ message: expect.stringContaining("did not make a WebSocket") });
});

test("a message that lacks a field of its type ends the episode", async () => {
  const { cameras: _cameras, ...short } = OPENED;
  await using service = new Service({ "session.open": say(short) });
  const socket = await EpisodeSocket.connect(service.at());
  if (socket instanceof Problem) throw new Error(socket.message);
  const refused = await socket.open({ ...OPENING, format: "json" });
  expect(refused).toMatchObject({ message: expect.stringContaining("said session.opened without the fields") });
  expect(await socket.observe({})).toBe(refused as never);
  await using ragged = new Service({ ...open, observation: say({ ...CHUNK, actions: [[1, 2]] }) });
  const end = await (await ragged.opened()).observe({});
  expect(end).toMatchObject({ message: expect.stringContaining("said action_chunk without the fields") });
});
