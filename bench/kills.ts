/** What stays true after kill -9 under load? See test/program/kill.ts, llm-kill.ts, runs-kill.ts. The first broken promise ends a proof. */
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { Problem } from "../src/std/problem.ts";
import { killRounds } from "../test/program/kill.ts";
import { llmKillRounds } from "../test/program/llm-kill.ts";
import { runsKillRounds } from "../test/program/runs-kill.ts";
import { POSTGRES, PostgresServer } from "../test/store/postgres-server.ts";
import { counts, type Figure, judged, type Outcome, type Proof, type Size } from "./proof.ts";

/** The number of kills on each store. */
const KILLS = 100;

export const kill: Proof = {
  name: "kill",
  question: "After kill -9 at random points under load, is every answered observation replayed byte for byte?",
  async run(size) {
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    const { rounds, answered, cutOff } = await killRounds(size === "small" ? 1 : 2 * KILLS, frames, "full");
    const rows = counts([
      ["kills", rounds],
      ["answered observations, all replayed byte for byte", answered],
      ["observations cut off, then answered once", cutOff],
    ]);
    return { ...judged(rows), pass: answered > 0 };
  },
};

export const llmKill: Proof = {
  name: "llm-kill",
  question:
    "After kill -9 under live responses and background jobs, is none lost silently, none sent to the provider twice, each charged once?",
  run: (size) =>
    onStores(size, async (server, kills) => {
      const killed = await llmKillRounds(server, kills, size);
      return [
        ["kills", killed.kills],
        ["live answers, each given again byte for byte", killed.live],
        ["jobs accepted, each with its end", killed.jobs],
        ["jobs that failed because their process was killed", killed.jobsFailed],
        ["requests not answered", killed.unanswered],
        ["of them kept, there for the repeat", killed.kept],
        ["of them never begun, run by the repeat", killed.ran],
        ["of them perhaps sent to the provider, their key spent", killed.terminal],
        ["calls of the provider, no two of one key", killed.calls],
      ];
    }),
};

export const runsKill: Proof = {
  name: "runs-kill",
  question:
    "After kill -9 under uploads, deletions and reads of runs, is what was acknowledged there whole, and nothing else?",
  run: (size) =>
    onStores(size, async (server, kills) => {
      const killed = await runsKillRounds(server, kills, size, size === "full");
      return [
        ["kills", killed.kills],
        ["of them while the service started", killed.starting],
        ["requests answered, each as promised afterwards", killed.answered],
        ["requests cut off, each done whole or not at all", killed.cutOff],
        ["requests refused or broken off by the client, nothing of them kept", killed.refused],
        ["uploads with parts that went on after a kill and were finished", killed.resumed],
        ["runs whose completion was asked for", killed.completed],
        ["files read, each with the bytes that were sent", killed.read],
      ];
    }),
};

type Kills = (server: PostgresServer | undefined, kills: number) => Promise<[measure: string, count: number][]>;

/** With SQLite, and at full size with PostgreSQL too. */
async function onStores(size: Size, killed: Kills): Promise<Outcome | Problem> {
  if (size === "small") return judged(counts(await killed(undefined, 1), "SQLite: "));
  if (POSTGRES === undefined) {
    return new Problem("PostgreSQL is not installed, and half of this proof needs it; apt-get install postgresql");
  }
  const rows: Figure[] = counts(await killed(undefined, KILLS), "SQLite: ");
  await using server = await PostgresServer.start("fsync=off");
  return judged([...rows, ...counts(await killed(server, KILLS), "PostgreSQL: ")]);
}
