/** Run storage that is killed again and again while clients fill runs; runs-kill/check.ts has the promises that it keeps. */
import { LIMITS } from "../../src/limits.ts";
import { RandomStream } from "../../src/std/random.ts";
import type { PostgresServer } from "../store/postgres-server.ts";
import { Books } from "./books.ts";
import { until } from "./outage.ts";
import { expectKept } from "./runs-kill/check.ts";
import { Client, readRuns } from "./runs-kill/clients.ts";
import { Model } from "./runs-kill/model.ts";
import { expectBytes, foundRuns } from "./runs-kill/records.ts";

const CLIENTS = 5;
/** The number of clients that upload files of several parts. */
const LARGE = 1;
const READERS = 2;
/** Answers before a kill, and milliseconds after the last of them, at most. */
const ANSWERED_MAX = 60;
const LOAD_MS = 150;
/** One of this many restarts is killed, too, within this time. */
const CUT_STARTS = 6;
const CUT_START_MS = 1500;

export interface RunsKilled {
  readonly kills: number;
  /** The kills of a service that was not ready yet. */
  readonly starting: number;
  readonly answered: number;
  /** Requests without an answer: each done whole or not at all. */
  readonly cutOff: number;
  readonly refused: number;
  readonly resumed: number;
  /** Files that were read whole, each with the bytes that were sent. */
  readonly read: number;
  /** Runs whose completion was asked for. */
  readonly completed: number;
}

/** Kills the service `kills` times. Throws at the first promise that is not kept. `swept`: waits for the sweep at the end. */
export async function runsKillRounds(
  postgresql: PostgresServer | undefined,
  kills: number,
  seed: string,
  swept = false,
): Promise<RunsKilled> {
  await using books = await Books.open(postgresql);
  const random = new RandomStream(seed);
  const model = new Model();
  const payer = await books.payer();
  const clients = Array.from({ length: CLIENTS }, (_, at) => new Client(model, `robot-${at}`, seed, at < LARGE));
  let [starting, cutOff, done] = [0, 0, 0];
  let server = await books.serve();
  while (done < kills) {
    const target = books.target(server, payer);
    const enough = model.answered + (random.word() % ANSWERED_MAX);
    const readers = Array.from({ length: READERS }, (_, at) => readRuns(model, target, `${seed}/${done}/${at}`));
    const working = Promise.all([...clients.map((client) => client.work(target)), ...readers]);
    // One that finds a broken promise ends the wait.
    await Promise.race([working, until("clients are answered", () => model.answered >= enough)]);
    await Promise.race([working, Bun.sleep(random.word() % LOAD_MS)]);
    server.child.kill("SIGKILL");
    await server.child.exited;
    await working;
    done += 1;
    cutOff += model.runs.reduce((sum, { pending }) => sum + pending.length, 0);
    if (random.word() % CUT_STARTS === 0 && done < kills) {
      await books.cutStart(random.word() % CUT_START_MS);
      done += 1;
      starting += 1;
    }
    server = await books.serve();
    await expectKept(books, model, books.target(server, payer), payer.accountId);
  }
  if (swept) {
    await Bun.sleep(1_000 * LIMITS.runGoneSeconds + 2 * LIMITS.runSweepMs);
    await expectBytes(books, (await foundRuns(books, payer.accountId)).values(), true);
  }
  await server.stop();
  await books.expectSound();
  const completed = model.runs.filter(({ turns }) => turns > 0).length;
  const { answered, refused, resumed, read } = model;
  return { kills: done, starting, answered, cutOff, refused, resumed, read, completed };
}
