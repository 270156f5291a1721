/** Is all that was acknowledged there whole after kill -9, and nothing else? See test/program/runs-kill.ts. */
import { Problem } from "../src/std/problem.ts";
import { type RunsKilled, runsKillRounds } from "../test/program/runs-kill.ts";
import { POSTGRES, PostgresServer } from "../test/store/postgres-server.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const KILLS = 100;

export const runsKill: Proof = {
  name: "runs-kill",
  question:
    "After kill -9 under uploads, deletions and reads of runs, is what was acknowledged there whole, and nothing else?",
  async run(size) {
    // The first broken promise ends this with an error.
    if (size === "small") return judged(figures("SQLite", await runsKillRounds(undefined, 1, size)));
    if (POSTGRES === undefined) {
      return new Problem("PostgreSQL is not installed, and half of this proof needs it; apt-get install postgresql");
    }
    const rows = figures("SQLite", await runsKillRounds(undefined, KILLS, size, true));
    await using server = await PostgresServer.start("fsync=off");
    return judged([...rows, ...figures("PostgreSQL", await runsKillRounds(server, KILLS, size, true))]);
  },
};

function figures(engine: string, killed: RunsKilled): Figure[] {
  const counts: [string, number][] = [
    ["kills", killed.kills],
    ["of them while the service started", killed.starting],
    ["requests answered, each as promised afterwards", killed.answered],
    ["requests cut off, each done whole or not at all", killed.cutOff],
    ["requests refused or broken off by the client, nothing of them kept", killed.refused],
    ["uploads with parts that went on after a kill and were finished", killed.resumed],
    ["runs whose completion was asked for", killed.completed],
    ["files read, each with the bytes that were sent", killed.read],
  ];
  return counts.map(([measure, value]) => ({ measure: `${engine}: ${measure}`, value, unit: "1" }));
}
