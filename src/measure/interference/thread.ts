/**
 * The entry point of the thread of a robot's neighbours, a Worker: the provider of language models, and one kind of work at a time,
 * whose requests are due at fixed times. Apart from the robot's own event loop, so that reading their answers does not delay its.
 */
import { systemClock } from "../../std/clock.ts";
import { startProvider } from "../llm/provider.ts";
import { KINDS } from "./kinds.ts";
import type { FromNeighbors, ToNeighbors } from "./messages.ts";

declare const self: Worker;

const provider = startProvider();
let stop: () => Promise<void> = async () => {};

function say(message: FromNeighbors): void {
  self.postMessage(message);
}

/** Work at the kind's rate until it is stopped; then all answers are waited for. */
function start({ kind, at }: Extract<ToNeighbors, { type: "start" }>): () => Promise<void> {
  const { perSecond, send, done } = KINDS[kind];
  const beganMs = systemClock.monotonicMs();
  const underWay = new Set<Promise<void>>();
  let [sent, failed] = [0, 0];
  const one = async (number: number): Promise<void> => {
    if (!done(await send(at, number))) failed += 1;
  };
  const cancel = systemClock.every(1, () => {
    while (beganMs + (sent * 1000) / perSecond <= systemClock.monotonicMs()) {
      const answered: Promise<void> = one(sent).finally(() => underWay.delete(answered));
      underWay.add(answered);
      sent += 1;
    }
  });
  return async () => {
    cancel();
    const seconds = (systemClock.monotonicMs() - beganMs) / 1000;
    await Promise.all(underWay);
    say({ type: "stopped", perSecond: sent / seconds, failed });
  };
}

self.onmessage = async ({ data }: MessageEvent<ToNeighbors>) => {
  if (data.type === "start") {
    stop = start(data);
    say({ type: "started" });
  } else if (data.type === "stop") {
    await stop();
  } else {
    await provider.stop();
    say({ type: "ended" });
  }
};

say({ type: "ready", providerOrigin: provider.origin });
