import { expect, test } from "bun:test";
import { PeerProcess } from "../../bench/peers/process.ts";
import { type Contender, inTurns, middle, ratio } from "../../bench/turns.ts";
import { Problem } from "../../src/std/problem.ts";

const PLAN = { rounds: 2, turns: 2, warmup: 1 };

/** Contenders that answer each turn with their number, and what they were asked for. */
function contenders(log: string[], broken: Readonly<Record<string, "start" | number>> = {}) {
  return async (): Promise<Contender<number>[]> =>
    ["own", "peer", "other"].map((name, index) => ({
      name,
      own: name === "own",
      async start() {
        if (broken[name] === "start") return new Problem(`${name} did not start`);
        let turns = 0;
        return {
          async turn() {
            log.push(name);
            turns += 1;
            return turns === broken[name] ? new Problem(`${name} broke`) : index + 1;
          },
          stop: async () => log.push(`${name} stops`),
        };
      },
    }));
}

test("turns alternate, a round begins anew and ends all, and the warm-up is not counted", async () => {
  const log: string[] = [];
  const compared = await inTurns(contenders(log), PLAN);
  if (compared instanceof Problem) throw new Error(compared.message);
  const round = ["other", "peer", "own", "own", "peer", "other", "other", "peer", "own"];
  const stops = ["own stops", "peer stops", "other stops"];
  expect(log).toEqual([...round, ...stops, ...round, ...stops]);
  expect(compared.rounds.map((one) => one.get("peer"))).toEqual([
    [2, 2],
    [2, 2],
  ]);
  const sum = (turns: readonly number[]) => turns.reduce((total, one) => total + one, 0);
  expect(middle(compared.rounds, "other", sum)).toBe(6);
  expect(ratio(compared.rounds, ["own", "peer"], sum)).toBe(0.5);
});

test("a peer that does not start or breaks is named, its turns are dropped, and the others go on", async () => {
  const log: string[] = [];
  const compared = await inTurns(contenders(log, { peer: "start", other: 3 }), PLAN);
  if (compared instanceof Problem) throw new Error(compared.message);
  expect([...compared.failed].map(([name, { message }]) => [name, message])).toEqual([
    ["peer", "peer did not start"],
    ["other", "other broke"],
  ]);
  expect(compared.rounds.map((round) => [...round.keys()])).toEqual([["own"], ["own"]]);
  expect(log.filter((line) => line === "other stops")).toHaveLength(1);
});

test("a problem of our own service ends the comparison, and everything that runs", async () => {
  const log: string[] = [];
  const compared = await inTurns(contenders(log, { own: 2 }), PLAN);
  expect(compared).toEqual(new Problem("own broke"));
  expect(log.filter((line) => line.endsWith("stops"))).toHaveLength(3);
});

test("a process answers line by line, and one that ends says its last words", async () => {
  const words = ["sh", "-c", 'read line; echo "<$line>"; read line; echo first >&2; echo why >&2; exit 3'];
  const child = PeerProcess.start("the script", words);
  expect(await child.ask("one")).toBe("<one>");
  expect(await child.ask("two")).toEqual(new Problem("the script ended with exit code 3: why"));
  expect(child.running).toBe(false);
  await child.stop();
});
