/**
 * Requests at a fixed rate, whether earlier ones are answered or not (open loop), from a process of their own. Its first message
 * is the order: address, key, body and rate. "count" begins the count anew; at "stop" it waits for all answers, sends the figures
 * of the counted requests, and ends.
 */
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { summary } from "../src/measure/stats.ts";

const Order = Type.Object({ url: Type.String(), apiKey: Type.String(), body: Type.String(), perSecond: Type.Number() });

/** What became of the requests since "count". */
class Count {
  readonly fromMs = performance.now();
  /** From the moment at which each was due to its last byte. */
  readonly ms: number[] = [];
  sent = 0;
  failed = 0;
  firstFailure = "";

  fail(why: string): void {
    this.failed += 1;
    this.firstFailure ||= why;
  }
}

let count = new Count();
const underWay = new Set<Promise<void>>();

function start(order: unknown): () => void {
  if (!Value.Check(Order, order)) throw new Error("the first message is not an order for requests");
  const { url, apiKey, body, perSecond } = order;
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const send = async (counted: Count, dueMs: number): Promise<void> => {
    try {
      const response = await fetch(url, { method: "POST", headers, body });
      const text = await response.text();
      if (response.status !== 200) counted.fail(`${response.status}: ${text.slice(0, 200)}`);
    } catch (error) {
      counted.fail((error as Error).message);
    }
    counted.ms.push(performance.now() - dueMs);
  };
  const beganMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    for (;;) {
      const dueMs = beganMs + (sent * 1000) / perSecond;
      if (dueMs > performance.now()) return;
      sent += 1;
      count.sent += 1;
      // `send` does not reject: whatever fails is counted.
      const answered = send(count, dueMs).finally(() => underWay.delete(answered));
      underWay.add(answered);
    }
  }, 1);
  return () => clearInterval(timer);
}

let stop: (() => void) | undefined;

process.on("message", async (message) => {
  if (message === "count") count = new Count();
  else if (message !== "stop") stop = start(message);
  else {
    const { sent, fromMs } = count;
    const seconds = (performance.now() - fromMs) / 1000;
    stop?.();
    await Promise.all(underWay);
    const { failed, firstFailure, ms } = count;
    const { p50, p99 } = summary(ms);
    process.send?.({ per_second: sent / seconds, sent, failed, first_failure: firstFailure, p50_ms: p50, p99_ms: p99 });
    process.disconnect?.();
  }
});
