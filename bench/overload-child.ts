/**
 * The robots of the proof `overload`. Each message but the first, which names the service, is a load; its answer is what became of it.
 * In a closed load robots wait for their answers. An open load sends at a fixed rate, whether earlier observations are answered or not,
 * and times each from the moment at which it was due.
 */
import { Value } from "@sinclair/typebox/value";
import { answerMessages } from "./child.ts";
import { type Became, Load, Target } from "./overload-messages.ts";

/** Observations of one robot after an open load. */
const AFTER = 60;

let target: Target | undefined;
let turn = 0;

function nothing(): Became {
  return { sent: 0, chunkMs: [], refusedMs: [], withdrawn: 0, failed: 0, firstFailure: "", after: [] };
}

async function ask(became: Became, dueMs: number, extra: object): Promise<number> {
  if (target === undefined) throw new Error("the first message is not a service");
  const { url, apiKeys, body, deadlineMs } = target;
  turn += 1;
  const headers = { authorization: `Bearer ${apiKeys[turn % apiKeys.length]}`, "content-type": "application/json" };
  became.sent += 1;
  try {
    const response = await fetch(url, {
      method: "POST",
      headers,
      body: `${JSON.stringify(extra).slice(0, -1)}${body}`,
    });
    const text = await response.text();
    const ms = performance.now() - dueMs;
    const retryAfter = Number(response.headers.get("retry-after"));
    if (response.status === 200) became.chunkMs.push(ms);
    else if (response.status === 503 && text.includes('"code":"engine_unavailable"') && retryAfter >= 1) {
      became.refusedMs.push(ms);
      if (ms >= deadlineMs) became.withdrawn += 1;
    } else fail(became, `${response.status}: ${text.slice(0, 200)}`);
    return ms;
  } catch (error) {
    fail(became, (error as Error).message);
    return performance.now() - dueMs;
  }
}

function fail(became: Became, why: string): void {
  became.failed += 1;
  became.firstFailure ||= why;
}

async function closed(became: Became, robots: number, seconds: number): Promise<void> {
  const endMs = performance.now() + 1_000 * seconds;
  const robot = async () => {
    while (performance.now() < endMs) await ask(became, performance.now(), { seed: 0 });
  };
  await Promise.all(Array.from({ length: robots }, robot));
}

async function open(became: Became, perSecond: number, seconds: number, deadlineMs: number): Promise<void> {
  const beganMs = performance.now();
  const answers: Promise<number>[] = [];
  const count = Math.ceil(perSecond * seconds);
  while (answers.length < count) {
    const dueMs = beganMs + (answers.length * 1_000) / perSecond;
    if (dueMs <= performance.now()) answers.push(ask(became, dueMs, { seed: 0, deadline_ms: deadlineMs }));
    else await Bun.sleep(1);
  }
  // The load is over; what it left in the service is what the robot meets now.
  const overMs = performance.now();
  const robot = nothing();
  for (let n = 0; n < AFTER; n += 1) {
    const ms = await ask(robot, performance.now(), { seed: 0 });
    became.after.push({ sinceMs: performance.now() - overMs, ms });
  }
  became.failed += robot.failed;
  became.firstFailure ||= robot.firstFailure;
  await Promise.all(answers);
}

answerMessages(async (message) => {
  if (Value.Check(Target, message)) {
    target = message;
    return "ready";
  }
  if (!Value.Check(Load, message) || target === undefined) throw new Error("the message is no load");
  const became = nothing();
  if ("robots" in message) await closed(became, message.robots, message.seconds);
  else await open(became, message.perSecond, message.seconds, target.deadlineMs);
  return became;
});
