/** A WebSocket message that was begun has a deadline, and all that are incomplete a bound: Bun assembles them before we hear of them. */
import { expect, test } from "bun:test";
import { watchConnections } from "../../../src/http/connection-watch.ts";
import { Connections } from "../../../src/http/connections.ts";
import { listen } from "../../../src/http/listen.ts";
import { LIMITS } from "../../../src/limits.ts";
import { HalfMessage, HalfMessages } from "../../../src/robot/socket/half-messages.ts";
import { Networks } from "../../../src/std/networks.ts";
import { Problem } from "../../../src/std/problem.ts";
import { FakeClock } from "../../std/fake-clock.ts";
import { MODEL, stage } from "../stage.ts";
import { frame, OPCODE } from "./raw.ts";

const { socketMessageMs } = LIMITS;
const OPEN = { type: "session.open", model: MODEL, instruction: "fold the towel" };

async function stand() {
  const at = await stage();
  const listener = listen(at.app, { host: "127.0.0.1", port: 0 });
  if (listener instanceof Problem) throw new Error(listener.message);
  const watch = await watchConnections(listener.port);
  if (watch instanceof Problem) throw new Error(watch.message);
  const { halves } = at.service.socket;
  const { clock, log } = at.service.core;
  const deps = { clock, log, proxies: new Networks("none") };
  const connections = new Connections(deps, watch, { max: 100, networkMax: 100 }, halves.meters);
  const connect = async () => {
    const received: Buffer[] = [];
    const closed = Promise.withResolvers<Buffer>();
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: listener.port,
      socket: {
        data: (_, bytes) => {
          received.push(Buffer.from(bytes));
        },
        close: () => closed.resolve(Buffer.concat(received)),
      },
    });
    socket.write(
      `GET /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${at.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    await until(() => received.length > 0);
    const write = (bytes: Uint8Array) => socket.write(bytes);
    /** How often the service has said it. */
    const said = (words: string) => Buffer.concat(received).toString("latin1").split(words).length - 1;
    return { write, said, closed: closed.promise };
  };
  /** A robot whose session is open. */
  const robot = async () => {
    const connected = await connect();
    connected.write(frame(JSON.stringify(OPEN), { opcode: OPCODE.text }));
    await until(() => connected.said("session.opened") === 1);
    return connected;
  };
  const until = async (met: () => boolean) => {
    while (!met()) {
      connections.look();
      halves.check();
      await Bun.sleep(5);
    }
  };
  const halfBytes = () => [...halves.meters.values()].map(({ bytes }) => bytes);
  return {
    ...at,
    halves,
    connect,
    robot,
    until,
    halfBytes,
    [Symbol.asyncDispose]: async () => {
      watch.close();
      await listener.stop();
    },
  };
}

test("half a message, one byte at a time: its connection is closed with 1008 after the deadline, a robot beside it is not", async () => {
  await using at = await stand();
  const [slow, robot] = [await at.connect(), await at.robot()];
  const message = frame('{"type":"session.close"}', { opcode: OPCODE.text });
  slow.write(message.subarray(0, 20));
  await at.until(() => (at.halfBytes()[0] ?? 0) > 0);
  // What of it is seen: where the handshake ends is known but for a few bytes.
  const seen = at.halfBytes()[0] ?? 0;
  for (let byte = 20; byte < 25; byte += 1) {
    at.clock.advance(socketMessageMs / 5);
    slow.write(message.subarray(byte, byte + 1));
    await at.until(() => at.halfBytes()[0] === seen + byte - 19);
    // Pings and whole messages are no half ones.
    robot.write(frame("ping", { opcode: OPCODE.ping }));
    robot.write(frame("{}", { opcode: OPCODE.text }));
  }
  at.clock.advance(1);
  await at.until(() => at.logLines.some((line) => line.includes("a message did not arrive whole in time")));
  at.clock.advance(LIMITS.socketCloseMs);
  const told = await slow.closed;
  expect(told.includes(Buffer.from([0x03, 0xf0]))).toBe(true);
  expect(at.halves.meters.size).toBe(1);
  expect(at.logLines.filter((line) => line.startsWith("socket cut"))).toHaveLength(1);
  expect(robot.said("type_missing")).toBe(5);
});

test("large messages, fragments and pings that arrive whole leave nothing behind that would pass for a half one", async () => {
  await using at = await stand();
  const robot = await at.robot();
  // A text of 60,000 bytes that is refused and closes nothing.
  const text = Buffer.from(`{"type":"x"}${" ".repeat(59_988)}`);
  for (let turn = 0; turn < 5; turn += 1) {
    for (let part = 0; part < 20; part += 1) {
      const opcode = part === 0 ? OPCODE.text : OPCODE.more;
      robot.write(frame(text.subarray(part * 3_000, (part + 1) * 3_000), { opcode, final: part === 19 }));
    }
    robot.write(frame("abcd", { opcode: OPCODE.ping }));
    await at.until(() => robot.said("unknown_type") === turn + 1 && at.halfBytes()[0] === 0);
  }
  at.clock.advance(10 * socketMessageMs);
  for (let look = 0; look < 20; look += 1) await at.until(() => true);
  expect(at.logLines.filter((line) => line.startsWith("socket cut"))).toEqual([]);
});

test("an incomplete message counts with what the kernel has received; over the bound of all the oldest connection is closed with 1013", () => {
  const clock = new FakeClock();
  const halves = new HalfMessages(clock, 10_000, 1_000_000);
  const ended: [number, boolean][] = [];
  const open = (at: number) => {
    const half = new HalfMessage(300, false, (late) => {
      ended.push([at, late]);
      halves.meters.delete(`p${at}`);
    });
    halves.meters.set(`p${at}`, half);
    half.changed(304, clock.monotonicMs(), 0);
    return half;
  };
  const all = [0, 1, 2].map(open);
  for (const half of all) {
    half.changed(304 + 400_000, clock.monotonicMs(), 0);
    clock.advance(10);
  }
  expect(all.map(({ bytes }) => bytes)).toEqual([400_000, 400_000, 400_000]);
  halves.check();
  expect(ended).toEqual([[0, false]]);
  // The second one ends, and the third with it begins anew: neither is late.
  all[1]?.message(400_000 - 14);
  halves.check();
  clock.advance(10_001);
  halves.check();
  expect(ended).toEqual([
    [0, false],
    [2, true],
  ]);
});

test("a message that hides in the heads it might have had, in pings, or behind others is not hidden for long", () => {
  const half = (isSecure = false) => new HalfMessage(300, isSecure, () => {});
  const behind = half();
  behind.changed(300, 0, 0);
  behind.message(1_000_000);
  behind.changed(300 + 1_000_014 + 400_000, 100, 0);
  expect(behind.bytes).toBe(400_000);
  const pinging = half();
  let received = 300;
  pinging.changed(received, 0, 0);
  for (let turn = 1; turn <= 1_000; turn += 1) {
    received += 131;
    pinging.control();
    pinging.changed(received, turn * 100, 0);
  }
  expect(pinging.bytes).toBe(1_000 * 125 - 8_192);
  // Messages that bring more than they account for do not become a credit either.
  const credit = half();
  received = 300;
  credit.changed(received, 0, 0);
  for (let turn = 1; turn <= 100; turn += 1) {
    received += 31_000 + 14 + (turn % 2 === 0 ? -900 : 900);
    credit.message(31_000);
    credit.changed(received, turn * 100, 0);
  }
  credit.changed(received + 100_000, 10_001, 0);
  expect(credit.bytes).toBe(100_000);
});
