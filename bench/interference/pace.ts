/** Requests at a fixed rate, whether earlier ones are answered or not. */
import type { Counter } from "./kinds.ts";

/** Calls `send` with the number of each request when it is due. */
export function atRate(perSecond: number, counter: Counter, send: (number: number) => void): void {
  const beganMs = performance.now();
  let number = 0;
  setInterval(() => {
    while (!counter.isStopped && beganMs + (number * 1000) / perSecond <= performance.now()) {
      counter.sent(1);
      send(number);
      number += 1;
    }
  }, 1);
}
