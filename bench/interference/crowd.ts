/**
 * A crowd that pays nothing: sockets of a key without credit that open sessions and send frames, slow connections, unknown keys, and
 * large bodies of another account. Its answers are counted by kind and status, and none is a failure.
 */
import { connect, type Socket } from "node:net";
import { newKey } from "../../src/account/key.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL } from "../../src/measure/sample/observation.ts";
import type { Counter, Order } from "./kinds.ts";
import { atRate } from "./pace.ts";

const FULL = { sockets: 64, slow: 200, unknownPerSecond: 1000, bodiesPerSecond: 10 } as const;

export function crowd(order: Order, bodyBytes: number, counter: Counter): void {
  const { url, otherKey, share } = order;
  for (let at = 0; at < FULL.sockets * share; at += 1) spentSocket(order, counter);
  for (let at = 0; at < FULL.slow * share; at += 1) slowConnection(new URL(url), counter);
  // Made before: making a key costs more than sending one.
  const keys = Array.from({ length: 4_096 }, () => newKey(0).key);
  const large = `["${"\\\\".repeat(Math.floor((bodyBytes - 4) / 2))}"]`;
  const post = (what: string, key: string, body: string) => {
    const headers = { authorization: `Bearer ${key}` };
    fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body })
      .then((response) => response.arrayBuffer().then(() => `${what} ${response.status}`))
      .then(
        (answer) => counter.answered(undefined, answer),
        () => counter.answered(undefined, "no answer"),
      );
  };
  atRate(FULL.unknownPerSecond * share, counter, (at) => post("unknown key", keys[at % keys.length] ?? "", "{}"));
  atRate(FULL.bodiesPerSecond * share, counter, () => post("large body", otherKey, large));
}

/** A connection that never ends its headers. It comes again when it is closed. */
function slowConnection({ hostname, port }: URL, counter: Counter): void {
  let socket: Socket | undefined;
  const again = () => {
    socket = connect({ host: hostname, port: Number(port) }, () => socket?.write("GET / HTTP/1.1\r\nX-Slow: "));
    socket.on("error", () => counter.answered(undefined, "slow connection failed"));
    socket.on("close", () => {
      counter.answered(undefined, "slow connection closed");
      if (!counter.isStopped) setTimeout(again, 100);
    });
  };
  again();
  setInterval(() => socket?.writable && socket.write("x"), 1000);
}

/** It asks for a session, sends a frame all the same, and comes again when it is closed. */
function spentSocket(order: Order, counter: Counter): void {
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
    counter.answered(undefined, `spent socket ${code}`);
    if (!counter.isStopped) setTimeout(() => spentSocket(order, counter), 1000);
  };
}
