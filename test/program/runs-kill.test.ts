/** The small size of `npm run prove runs-kill`. */
import { expect, test } from "bun:test";
import { runsKillRounds } from "./runs-kill.ts";

test("kill -9 under uploads, deletions and reads: what was acknowledged is there whole, nothing else is, and uploads go on", async () => {
  const { kills, answered, read } = await runsKillRounds(undefined, 5, "small");
  expect([kills, answered > 0, read > 0]).toEqual([5, true, true]);
}, 120_000);
