/** Rounds in which the store or the service is taken away under load, and the proof after each that money was taken once. */
import { RandomStream } from "../../src/std/random.ts";
import type { PostgresServer } from "../store/postgres-server.ts";
import { Books, CHUNK, type Payer } from "./books.ts";
import { type Answer, Payers, post, type Sent, type Target } from "./payers.ts";
import type { Server } from "./program.ts";

/** The specification's bound for an answer while the store is down. */
const DOWN_ANSWER_MS = 2_000;
/** And what clients, service and tests that share few cores may add to it before anybody looks at the clock. */
const SCHEDULING_MS = 250;
/** Codes of an answer while the store is down. */
const DOWN_CODES = ["auth_unavailable", "billing_unavailable", "metering_unavailable", "observation_outcome_unknown"];
const UNKNOWN = "observation_outcome_unknown";
const CLIENTS = 32;
/** Answers that show that the service works. */
const SETTLED_IN = 64;
/** Answers before a kill, and milliseconds of load before the store is taken away, at most. */
const LOAD_MAX = 200;
/** Repeats that are under way at once. */
const REPEATS = 16;

/** Figures of one round or of many. */
export interface Tally {
  rounds: number;
  /** Observations that were answered with a chunk. */
  answered: number;
  /** Answered observations that were given again byte for byte, at no charge. */
  replayed: number;
  /** Observations without an answer, or with one that says that nobody knows. */
  unanswered: number;
  /** Unanswered observations that had been charged; each then got its answer at no further charge. */
  chargedUnanswered: number;
  /** Requests that were refused while the store was down. */
  refused: number;
  /** The longest wait for an answer while the store was down. */
  longestDownMs: number;
  /** Time from the store's return to the first chunk that was asked for after it, in the slowest round. */
  slowestBackMs: number;
}

const NOTHING: Tally = {
  rounds: 0,
  answered: 0,
  replayed: 0,
  unanswered: 0,
  chargedUnanswered: 0,
  refused: 0,
  longestDownMs: 0,
  slowestBackMs: 0,
};

function sum(one: Tally, other: Tally): Tally {
  return {
    rounds: one.rounds + other.rounds,
    answered: one.answered + other.answered,
    replayed: one.replayed + other.replayed,
    unanswered: one.unanswered + other.unanswered,
    chargedUnanswered: one.chargedUnanswered + other.chargedUnanswered,
    refused: one.refused + other.refused,
    longestDownMs: Math.max(one.longestDownMs, other.longestDownMs),
    slowestBackMs: Math.max(one.slowestBackMs, other.slowestBackMs),
  };
}

/** How PostgreSQL is taken away: silent, or gone with all its connections. */
type Outage = "frozen" | "crashed";

/** Takes the store away `rounds` times, each time for `downMs`. */
export async function stopRounds(
  postgresql: PostgresServer,
  outages: readonly Outage[],
  downMs: number,
  frames: readonly Uint8Array[],
  seed: string,
): Promise<Tally> {
  await using books = await Books.open(postgresql);
  const random = new RandomStream(seed);
  const server = await books.serve();
  let tally = NOTHING;
  for (const outage of outages) {
    const payer = await books.payer();
    const payers = new Payers(books.target(server, payer), frames, CLIENTS);
    await until("the service answers", () => payers.answeredSince(0) >= SETTLED_IN);
    await Bun.sleep(random.word() % LOAD_MAX);
    const down = await takenAway(postgresql, outage, downMs);
    // Without a restart, and within what a person would wait.
    await until("the service is back", () => payers.answeredSince(down.backMs) >= SETTLED_IN);
    const log = await payers.stop();
    const answers = expectAnswers(log, down);
    tally = sum(tally, { ...(await expectOnce(books, server, payer, log)), ...answers });
  }
  await server.stop();
  return tally;
}

/** When the store was away, and from when on it was there again. */
interface Window {
  readonly startMs: number;
  readonly endMs: number;
  readonly backMs: number;
}

async function takenAway(postgresql: PostgresServer, outage: Outage, ms: number): Promise<Window> {
  if (outage === "frozen") postgresql.signal("SIGSTOP");
  else await postgresql.down();
  const startMs = performance.now();
  await Bun.sleep(ms);
  const endMs = performance.now();
  if (outage === "frozen") postgresql.signal("SIGCONT");
  else await postgresql.up();
  return { startMs, endMs, backMs: performance.now() };
}

/** Every request is answered, in time; while the store is down it is refused and told when to come back. */
function expectAnswers(log: readonly Sent[], { startMs, endMs, backMs }: Window): Partial<Tally> {
  const during = log.filter((one) => one.endedMs > startMs && one.sentMs < endMs);
  for (const { answer, sentMs, endedMs, observationId } of log) {
    const what = `${observationId}: ${answer.status} ${answer.code ?? ""} after ${Math.round(endedMs - sentMs)} ms`;
    const refusal = answer.status === 503 && DOWN_CODES.includes(answer.code ?? "");
    must(refusal || answer.status === 200, what);
    must(!refusal || Number(answer.retryAfter) >= 1, `${what}, without Retry-After`);
    must(answer.status !== 200 || sentMs < startMs || endedMs > endMs, `${what}, while the store was down`);
  }
  const longestDownMs = Math.max(...during.map(({ sentMs, endedMs }) => endedMs - sentMs));
  must(longestDownMs < DOWN_ANSWER_MS + SCHEDULING_MS, `an answer took ${Math.round(longestDownMs)} ms`);
  const back = log.filter(({ answer, sentMs }) => answer.status === 200 && sentMs > backMs);
  const slowestBackMs = Math.min(...back.map(({ endedMs }) => endedMs)) - backMs;
  return { refused: during.filter(({ answer }) => answer.status !== 200).length, longestDownMs, slowestBackMs };
}

/** Kills the service `rounds` times under load, and starts it again. */
export async function paidKillRounds(
  postgresql: PostgresServer | undefined,
  rounds: number,
  frames: readonly Uint8Array[],
  seed: string,
): Promise<Tally> {
  await using books = await Books.open(postgresql);
  const random = new RandomStream(seed);
  let server = await books.serve();
  let tally = NOTHING;
  for (let round = 0; round < rounds; round += 1) {
    const payer = await books.payer();
    const payers = new Payers(books.target(server, payer), frames, CLIENTS);
    const enough = 1 + (random.word() % LOAD_MAX);
    await until("the service answers", () => payers.answeredSince(0) >= enough);
    server.child.kill("SIGKILL");
    await server.child.exited;
    const log = await payers.stop();
    server = await books.serve();
    tally = sum(tally, await expectOnce(books, server, payer, log));
  }
  await server.stop();
  return tally;
}

/** Each observation of the log was charged at most once, the answered ones exactly once; repeating them shows it. */
async function expectOnce(books: Books, server: Server, payer: Payer, log: readonly Sent[]): Promise<Tally> {
  const before = await charged(books, payer);
  const answered = log.filter(({ answer }) => answer.status === 200);
  const open = log.filter(({ answer }) => answer.status === 0 || answer.code === UNKNOWN);
  for (const { answer, observationId } of log) {
    const charge = before.get(observationId);
    if (answer.status === 200) must(charge === answer.generationId, `${observationId} was answered, not charged`);
    // Any other answer says that nothing ran.
    else if (answer.status !== 0 && answer.code !== UNKNOWN) {
      must(charge === undefined, `${observationId} was refused with ${answer.code}, and charged`);
    }
  }
  expectSteps(answered);
  const target = books.target(server, payer);
  const repeats = await repeated(target, answered);
  for (const [index, { observationId, answer }] of answered.entries()) {
    const again = repeats[index];
    const same = again?.text === answer.text && again.generationId === answer.generationId && again.replayed;
    must(
      same === true,
      `${observationId} was answered, its repeat is ${again?.status} ${again?.code ?? ""} and no replay`,
    );
  }
  must((await charged(books, payer)).size === before.size, "a replay was charged");
  let ran = 0;
  for (const [index, again] of (await repeated(target, open)).entries()) {
    const observationId = open[index]?.observationId ?? "";
    const charge = before.get(observationId);
    if (charge === undefined && again.status === 200) ran += 1;
    const right = charge === undefined ? !again.replayed : again.replayed && again.generationId === charge;
    // An episode of before may be over; what was charged of it is there all the same.
    const over = charge === undefined && (again.status === 410 || again.status === 409);
    must(right && (again.status === 200 || over), `${observationId} was not answered, its repeat is ${again.status}`);
  }
  must((await charged(books, payer)).size === before.size + ran, "repeats were charged more than once");
  await books.expireHolds();
  must((await books.money(payer)).held === 0n, "something is held although nothing runs");
  await books.expectSound();
  const chargedUnanswered = open.filter(({ observationId }) => before.has(observationId)).length;
  const counts = { answered: answered.length, replayed: answered.length, unanswered: open.length };
  return { ...NOTHING, ...counts, rounds: 1, chargedUnanswered };
}

/** The run of each observation that was charged. All requests have an id, so runs and records are the same ones. */
async function charged(books: Books, payer: Payer): Promise<Map<string, string>> {
  const [charges, kept, money] = [await books.charges(payer), await books.kept(payer), await books.money(payer)];
  const runs = kept.map(({ generationId }) => generationId).sort();
  must(charges.map(({ id }) => id).join() === runs.join(), "the settled runs are not those of the observations");
  must(
    charges.every(({ cost }) => cost === CHUNK),
    "a run was not settled at its price",
  );
  must(money.settled === BigInt(charges.length) * CHUNK, "the account's total is not that of its runs");
  const map = new Map(kept.map(({ observationId, generationId }) => [observationId, generationId]));
  must(map.size === kept.length, "an observation was kept twice");
  return map;
}

/** The steps of each session are 0, 1, 2, …: no refusal has moved one. */
function expectSteps(answered: readonly Sent[]): void {
  const steps = new Map<string, number>();
  for (const { sessionId, answer } of answered) {
    if (sessionId === "") continue;
    const step = steps.get(sessionId) ?? 0;
    must(answer.step === String(step), `${sessionId}: step ${answer.step} where ${step} was next`);
    steps.set(sessionId, step + 1);
  }
}

async function repeated(target: Target, log: readonly Sent[]): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  for (let from = 0; from < log.length; from += REPEATS) {
    const part = log.slice(from, from + REPEATS);
    answers.push(...(await Promise.all(part.map(({ body }) => post(target, body)))));
  }
  return answers;
}

/** Polls; gives up after half a minute. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const dueMs = performance.now() + 30_000;
  while (!(await holds())) {
    must(performance.now() < dueMs, `waited in vain until ${what}`);
    await Bun.sleep(10);
  }
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
