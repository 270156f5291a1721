/**
 * A crowd that pays nothing, from a process of its own: sockets of a key without credit that open sessions and send frames, connections
 * that send half a header a byte at a time, keys that nobody has, and large bodies of another account. Its first message is the order; at
 * "stop" it says what was answered, and ends.
 */
import { connect, type Socket } from "node:net";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { makeKey } from "../src/account/key.ts";
import { LIMITS } from "../src/limits.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL } from "../src/measure/sample/observation.ts";

const Order = Type.Object({
  url: Type.String(),
  spentKey: Type.String(),
  otherKey: Type.String(),
  sockets: Type.Integer(),
  slow: Type.Integer(),
  unknownPerSecond: Type.Number(),
  bodiesPerSecond: Type.Number(),
});
type Order = Static<typeof Order>;

/** Answers by kind and status or close code. */
const counts: Record<string, number> = {};
let ended = false;

function count(what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}

/** At a fixed rate, whether earlier ones are answered or not. */
function atRate(perSecond: number, send: () => Promise<string>): void {
  const beganMs = performance.now();
  let sent = 0;
  setInterval(() => {
    while (!ended && beganMs + (sent * 1000) / perSecond <= performance.now()) {
      sent += 1;
      send().then(count, () => count("no answer"));
    }
  }, 1);
}

function unknownKeys({ url, unknownPerSecond }: Order): void {
  // Made before: making a key costs more than sending one.
  const keys = Array.from({ length: 4_096 }, makeKey);
  let at = 0;
  atRate(unknownPerSecond, async () => {
    at = (at + 1) % keys.length;
    const headers = { authorization: `Bearer ${keys[at]}` };
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: "{}" });
    await response.arrayBuffer();
    return `unknown key ${response.status}`;
  });
}

function largeBodies({ url, otherKey, bodiesPerSecond }: Order): void {
  const body = `["${"\\\\".repeat(Math.floor((LIMITS.robotBodyBytesMax - 4) / 2))}"]`;
  atRate(bodiesPerSecond, async () => {
    const headers = { authorization: `Bearer ${otherKey}` };
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    await response.arrayBuffer();
    return `large body ${response.status}`;
  });
}

/** A connection that never ends its headers; it comes again when it is closed. */
function slowConnection({ hostname, port }: URL): void {
  let socket: Socket | undefined;
  const again = () => {
    socket = connect({ host: hostname, port: Number(port) }, () => socket?.write("GET / HTTP/1.1\r\nX-Slow: "));
    socket.on("error", () => count("slow connection failed"));
    socket.on("close", () => {
      count("slow connection closed");
      if (!ended) setTimeout(again, 100);
    });
  };
  again();
  setInterval(() => socket?.writable && socket.write("x"), 1000);
}

/** A socket of an account without credit: it asks for a session, sends frames all the same, and comes again when it is closed. */
function spentSocket(order: Order): void {
  const headers = { authorization: `Bearer ${order.spentKey}` };
  const frame = new Uint8Array(64 * 1024).fill(1);
  frame.set([0, 0xff, 0xd8, 0xff]);
  const socket = new WebSocket(`${order.url.replace(/^http/, "ws")}/v1/responses`, { headers } as never);
  socket.onopen = () => {
    socket.send(JSON.stringify({ type: "session.open", model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION }));
    socket.send(frame);
  };
  socket.onerror = () => undefined;
  socket.onclose = ({ code }) => {
    count(`spent socket ${code}`);
    if (!ended) setTimeout(() => spentSocket(order), 1000);
  };
}

process.on("message", (message) => {
  if (message === "stop") {
    ended = true;
    process.send?.(counts);
    process.exit(0);
  }
  if (!Value.Check(Order, message)) throw new Error("the first message is not an order for a crowd");
  for (let at = 0; at < message.sockets; at += 1) spentSocket(message);
  for (let at = 0; at < message.slow; at += 1) slowConnection(new URL(message.url));
  unknownKeys(message);
  largeBodies(message);
});
