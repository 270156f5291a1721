/** `count` pieces of work, numbered from 1, done by some workers side by side. The first problem ends all of it. */
import type { Problem } from "../src/std/problem.ts";

export async function atOnce(
  workers: number,
  count: number,
  work: (number: number, worker: number) => Promise<Problem | undefined>,
): Promise<Problem | undefined> {
  let next = 1;
  let problem: Problem | undefined;
  const worker = async (at: number) => {
    while (next <= count && problem === undefined) {
      const number = next;
      next += 1;
      problem ??= await work(number, at);
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, at) => worker(at)));
  return problem;
}
