/** Is money taken once, whatever is killed or stopped? See test/program/outage.ts. */
import { Problem } from "../src/std/problem.ts";
import { paidKillRounds, stopRounds, type Tally } from "../test/program/outage.ts";
import { smallFrames } from "../test/program/payers.ts";
import { POSTGRES, PostgresServer } from "../test/store/postgres-server.ts";
import { counts, type Figure, judged, type Proof, type Size } from "./proof.ts";

const ROUNDS = {
  small: { kills: 1, stops: 1, downMs: 1_800 },
  full: { kills: 100, stops: 20, downMs: 4_000 },
} as const;

export const money: Proof = {
  name: "money",
  question:
    "After kill -9 of the service and stops of PostgreSQL under load, is every observation charged exactly once?",
  async run(size) {
    if (POSTGRES === undefined && size === "full") {
      return new Problem("PostgreSQL is not installed, and half of this proof needs it; apt-get install postgresql");
    }
    // The first observation that is not charged once ends this with an error.
    const rows = [
      ...(await killed("SQLite", undefined, size)),
      ...(POSTGRES === undefined ? [] : await onServer(size)),
    ];
    return judged(rows);
  },
};

async function killed(engine: string, server: PostgresServer | undefined, size: Size): Promise<Figure[]> {
  const tally = await paidKillRounds(server, ROUNDS[size].kills, await smallFrames(), size);
  return figures(`${engine}, service killed`, tally);
}

async function onServer(size: Size): Promise<Figure[]> {
  await using server = await PostgresServer.start("fsync=off");
  const rows = await killed("PostgreSQL", server, size);
  const { stops, downMs } = ROUNDS[size];
  for (const outage of ["frozen", "crashed"] as const) {
    const tally = await stopRounds(server, Array(stops).fill(outage), downMs, await smallFrames(), size);
    rows.push(
      ...figures(`PostgreSQL ${outage}`, tally),
      { measure: `PostgreSQL ${outage}: refused meanwhile`, value: tally.refused, unit: "1" },
      // Its limit, with an allowance for client and service on one machine, is in outage.ts.
      { measure: `PostgreSQL ${outage}: longest answer meanwhile`, value: tally.longestDownMs, unit: "ms" },
      { measure: `PostgreSQL ${outage}: slowest return to service`, value: tally.slowestBackMs, unit: "ms" },
    );
  }
  return rows;
}

function figures(what: string, { rounds, answered, replayed, unanswered, chargedUnanswered }: Tally): Figure[] {
  return counts(
    [
      ["times", rounds],
      ["observations answered, each charged once", answered],
      ["of them replayed byte for byte at no charge", replayed],
      ["observations not answered", unanswered],
      ["of them charged, once, their answer there for a repeat", chargedUnanswered],
    ],
    `${what}: `,
  );
}
