/** Is every response there again after kill -9, and none sent or charged twice? See test/program/llm-kill.ts. */
import { Problem } from "../src/std/problem.ts";
import { type LlmKilled, llmKillRounds } from "../test/program/llm-kill.ts";
import { POSTGRES, PostgresServer } from "../test/store/postgres-server.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const KILLS = 100;

export const llmKill: Proof = {
  name: "llm-kill",
  question:
    "After kill -9 under live responses and background jobs, is none lost silently, none sent to the provider twice, each charged once?",
  async run(size) {
    // The first response that breaks a promise ends this with an error.
    if (size === "small") return judged(figures("SQLite", await llmKillRounds(undefined, 1, size)));
    if (POSTGRES === undefined) {
      return new Problem("PostgreSQL is not installed, and half of this proof needs it; apt-get install postgresql");
    }
    const rows = figures("SQLite", await llmKillRounds(undefined, KILLS, size));
    await using server = await PostgresServer.start("fsync=off");
    return judged([...rows, ...figures("PostgreSQL", await llmKillRounds(server, KILLS, size))]);
  },
};

function figures(engine: string, killed: LlmKilled): Figure[] {
  const counts: [string, number][] = [
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
  return counts.map(([measure, value]) => ({ measure: `${engine}: ${measure}`, value, unit: "1" }));
}
