/** What the meter counts reaches the store once, also when the store does not say that it has it. */
import { expect, test } from "bun:test";
import { Meter } from "../../src/runs/meter.ts";
import type { RunStore } from "../../src/runs/store/runs.ts";
import { StoreDown } from "../../src/store/store.ts";
import { FakeClock } from "../std/fake-clock.ts";

type Given = Parameters<RunStore["runsMeter"]>[0];

/** A store that answers when the test says so. */
function stage() {
  const asked: { given: Given; answer: (outcome: "counted" | StoreDown) => void }[] = [];
  const runsMeter = (given: Given) => {
    const { promise, resolve } = Promise.withResolvers<"counted" | StoreDown>();
    asked.push({ given, answer: resolve });
    return promise;
  };
  const meter = new Meter({ runsMeter }, new FakeClock(), { info: () => {}, error: () => {} });
  return { meter, asked };
}

const turn = () => Bun.sleep(0);
const seen = (asked: ReturnType<typeof stage>["asked"]) =>
  asked.map(({ given }) => [given.flush, ...given.metered.map(({ requests }) => requests)]);

test("flushes go one after the other; those who wait meanwhile share the next one, which has all that is counted", async () => {
  const { meter, asked } = stage();
  meter.request("a1");
  const first = meter.flush();
  meter.request("a1");
  const others = [meter.flush(), meter.flush()];
  meter.request("a1");
  await turn();
  expect(seen(asked)).toEqual([[1, 1]]);
  asked[0]?.answer("counted");
  await first;
  await turn();
  expect(seen(asked)).toEqual([
    [1, 1],
    [2, 2],
  ]);
  asked[1]?.answer("counted");
  await Promise.all(others);
  await meter.flush();
  expect(asked.length).toBe(2);
});

test("what the store may or may not have taken goes again unchanged under its number, before anything else", async () => {
  const { meter, asked } = stage();
  meter.request("a1");
  for (const unknown of [true, false]) {
    const flush = meter.flush();
    asked.at(-1)?.answer(new StoreDown("down", unknown));
    await flush;
    meter.request("a1");
  }
  const flush = meter.flush();
  asked.at(-1)?.answer("counted");
  await turn();
  asked.at(-1)?.answer("counted");
  await flush;
  expect(seen(asked)).toEqual([
    [1, 1],
    [1, 1],
    [1, 1],
    [2, 2],
  ]);
  expect(new Set(asked.map(({ given }) => given.owner)).size).toBe(1);
});
