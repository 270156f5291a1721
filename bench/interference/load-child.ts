/** The load beside a robot: one kind of work (kinds.ts), at a fixed rate whether earlier requests are answered or not. */
import { Value } from "@sinclair/typebox/value";
import { LIMITS } from "../../src/limits.ts";
import { answerMessages } from "../child.ts";
import { STREAM_ID } from "../llm/setup.ts";
import { direct, openStreams, through } from "../llm/target.ts";
import { smallRequest } from "../small-request.ts";
import { crowd } from "./crowd.ts";
import { type Counter, type KindName, Order, type Sent } from "./kinds.ts";
import { atRate } from "./pace.ts";
import { pacedUpload } from "./uploads.ts";

const opened = Promise.withResolvers<string>();
const underWay = new Set<Promise<void>>();
let tally: Omit<Sent, "perSecond"> & { fromMs: number; sent: number };
let stopped = false;
begin();

function begin(): void {
  tally = { fromMs: performance.now(), sent: 0, failed: 0, firstFailure: "", answers: {} };
}

const counter: Counter = {
  sent(amount) {
    tally.sent += amount;
    opened.resolve("open");
  },
  answered(failure, what) {
    if (what !== undefined) tally.answers[what] = (tally.answers[what] ?? 0) + 1;
    if (failure === undefined) return;
    tally.failed += 1;
    tally.firstFailure ||= failure;
  },
  get isStopped() {
    return stopped;
  },
};

/** Sends requests and counts those that are not done as failed. */
function requests(perSecond: number, send: (number: number) => Promise<Response>, isDone: (status: number) => boolean) {
  const one = async (number: number): Promise<void> => {
    try {
      const response = await send(number);
      const text = await response.text();
      counter.answered(isDone(response.status) ? undefined : `${response.status}: ${text.slice(0, 200)}`);
    } catch (error) {
      counter.answered((error as Error).message);
    }
  };
  atRate(perSecond, counter, (number) => {
    const answered: Promise<void> = one(number).finally(() => underWay.delete(answered));
    underWay.add(answered);
  });
}

const isOk = (status: number): boolean => status >= 200 && status < 300;

const LOADS: Readonly<Record<KindName, (order: Order) => unknown>> = {
  async requests({ url, otherKey, share }) {
    const body = JSON.stringify(await smallRequest());
    const headers = { authorization: `Bearer ${otherKey}`, "content-type": "application/json" };
    const send = () => fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    requests(500 * share, send, isOk);
  },
  upload: (order) => pacedUpload(order, 20e6, counter),
  async streams({ url, apiKey, providerUrl, isControl, share }) {
    const count = Math.ceil(200 * share);
    await openStreams(isControl ? direct(providerUrl) : through({ url, apiKey }, STREAM_ID), count, 50);
    counter.sent(count);
  },
  "sign-ins": ({ url }) =>
    requests(
      4,
      (number) => {
        const email = `person-${number}@example.org`;
        const body = new URLSearchParams({ email, password: "not-the-password-of-anybody", next: "" });
        // Each request has a different address: the service does not check the password of a client that asks too often.
        const headers = { "x-forwarded-for": `10.0.${(number >> 8) & 255}.${number & 255}` };
        return fetch(`${url}/sign-in`, { method: "POST", headers, body, redirect: "manual" });
      },
      (status) => status !== 429 && status < 500,
    ),
  pages: ({ url }) => requests(20, (number) => fetch(`${url}${number % 2 === 0 ? "/docs" : "/openapi.json"}`), isOk),
  crowd: (order) => crowd(order, LIMITS.robotBodyBytesMax, counter),
};

answerMessages(async (message) => {
  if (message === "count") {
    begin();
    return "counting";
  }
  if (message === "stop") {
    stopped = true;
    const { fromMs, sent, failed, firstFailure, answers } = tally;
    const perSecond = (1000 * sent) / (performance.now() - fromMs);
    await Promise.race([Promise.all(underWay), Bun.sleep(10_000)]);
    return {
      perSecond,
      failed: Math.max(failed, tally.failed),
      firstFailure: firstFailure || tally.firstFailure,
      answers,
    };
  }
  if (!Value.Check(Order, message)) throw new Error("the first message is not an order");
  await LOADS[message.kind](message);
  return await opened.promise;
});
