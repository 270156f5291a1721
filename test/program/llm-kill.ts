/** A service of language models that is killed again and again under load; llm-round.ts has the promises that it keeps. */
import { RandomStream } from "../../src/std/random.ts";
import type { PostgresServer } from "../store/postgres-server.ts";
import { Books } from "./books.ts";
import { CountedProvider } from "./counted-provider.ts";
import { LlmClients } from "./llm-clients.ts";
import { type LlmTally, Round } from "./llm-round.ts";
import { until } from "./outage.ts";

const CLIENTS = 12;
/** Answers before a kill, and milliseconds after the last of them, at most. */
const ANSWERED_MAX = 40;
const LOAD_MS = 60;

export interface LlmKilled extends LlmTally {
  readonly kills: number;
  /** Calls of the provider, no two of one key. */
  readonly calls: number;
}

/** Kills the service `kills` times. Throws at the first promise that is not kept. */
export async function llmKillRounds(
  postgresql: PostgresServer | undefined,
  kills: number,
  seed: string,
): Promise<LlmKilled> {
  await using provider = await CountedProvider.start();
  await using books = await Books.open(postgresql, "echo", provider.tables);
  const random = new RandomStream(seed);
  const tallies: LlmTally[] = [];
  const open: Round[] = [];
  let server = await books.serve();
  for (let number = 0; number < kills; number += 1) {
    const payer = await books.payer();
    const clients = new LlmClients(books.target(server, payer), `r${number}`, CLIENTS);
    const enough = random.word() % ANSWERED_MAX;
    await until("the service answers", () => clients.answered >= enough);
    await Bun.sleep(random.word() % LOAD_MS);
    server.child.kill("SIGKILL");
    await server.child.exited;
    const round = new Round(payer, await clients.over(), provider);
    server = await books.serve();
    await round.expectKept(books.target(server, payer));
    // Alone on its store, a service has ended at its start what its predecessor ran. Beside others it waits whether that still lives.
    if (postgresql === undefined) tallies.push(await round.expectEnded(books, books.target(server, payer)));
    else open.push(round);
    await books.expectSound();
  }
  for (const round of open) tallies.push(await round.expectEnded(books, books.target(server, round.payer)));
  await server.stop();
  const { code, stdout, stderr } = await books.run(["admin", "ledger", "check"]);
  if (code !== 0) throw new Error(`tendon admin ledger check: ${stdout}${stderr}`);
  const calls = [...provider.calls.values()].reduce((sum, one) => sum + one, 0);
  if (calls !== provider.calls.size) throw new Error("a key was sent to the provider twice");
  return { kills, calls, ...tallies.reduce(sum) };
}

function sum(one: LlmTally, other: LlmTally): LlmTally {
  return {
    live: one.live + other.live,
    jobs: one.jobs + other.jobs,
    jobsFailed: one.jobsFailed + other.jobsFailed,
    unanswered: one.unanswered + other.unanswered,
    kept: one.kept + other.kept,
    ran: one.ran + other.ran,
    terminal: one.terminal + other.terminal,
  };
}
