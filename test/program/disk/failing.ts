/**
 * A service whose disk refuses the n-th operation of a request, for every n of every kind of request. The error is EIO or ENOSPC, once
 * or until it is repaired. It answers as the contract says, goes on when the disk does, and keeps its promises.
 */
import { CountedProvider } from "../counted-provider.ts";
import { get, statusOf } from "../llm-clients.ts";
import type { Target } from "../payers.ts";
import { Place, type Server } from "../program.ts";
import { type Ask, accepted, chunk, file, type Reply, response, socketChunk, upload } from "./asks.ts";
import { Disk, type Strike } from "./disk.ts";
import { configuration, payerBeside, type Stage, serveOn, type Told } from "./history.ts";
import { must } from "./must.ts";
import { expectPromises } from "./promises.ts";

/** How the disk fails. */
export const MODES: readonly Omit<Strike, "after">[] = [
  { error: "EIO", lasting: false },
  { error: "EIO", lasting: true },
  { error: "ENOSPC", lasting: true, half: true },
  { error: "ENOSPC", lasting: false },
];

/** What a client may be told while the disk fails: each may be asked again. */
const CODES = [
  ...["auth_unavailable", "billing_unavailable", "metering_unavailable", "observation_outcome_unknown"],
  ...["storage_unavailable", "submission_outcome_unknown", "upstream_unavailable", "upload_in_progress"],
];
/** And what a repeat may end in where nobody can tell what became of the first. */
const SPENT = ["idempotency_replay_terminal", "session_expired"];

/** No answer after this time is a hang. */
const ANSWER_MS = 15_000;
/** After the disk is in order; an upload whose end could not be recorded is free at the next sweep. */
const BACK_MS = 40_000;
const PAUSE_MS = 25;

const TEXT = "some bytes of a run ".repeat(50);

type Kind = (frames: readonly Uint8Array[], name: string) => Ask;

/** What is asked; `name` is new each time. */
const KINDS: readonly Kind[] = [
  chunk,
  socketChunk,
  (_, name) => response(name),
  (_, name) => accepted(name),
  (_, name) => file("arm-1/run-1", `${name}.txt`, TEXT),
  (frames, name) => chunk(frames, name, `session-${name}`),
];
/** Tried at fewer operations: some of its failures are mended by the sweep alone, every 15 s. */
const RARE: Kind = (_, name) => upload("arm-1/run-1", `${name}.bin`, TEXT);

export interface Failing {
  /** Operations that failed first. */
  readonly faults: number;
  /** Requests that were answered well all the same, and those that were refused. */
  readonly answered: number;
  readonly refused: number;
  /** After a sync that failed the service says that it is down, until it is started again. */
  readonly restarts: number;
}

interface Size {
  readonly modes: readonly Omit<Strike, "after">[];
  /** Operations of a request between two that fail. */
  readonly step: number;
  /** Operations of an upload between two that fail; 0 leaves the upload out. */
  readonly uploadStep: number;
}

/** Throws at the first promise that is not kept. */
export async function failingRounds(frames: readonly Uint8Array[], size: Size): Promise<Failing> {
  await using provider = await CountedProvider.start();
  await using place = await Place.make();
  await using disk = await Disk.make();
  await Bun.write(place.path("tendon.toml"), configuration(provider));
  const service = new FailingService({ place, disk, frames });
  await service.begin();
  let [first, name] = [1, 0];
  for (const mode of size.modes) {
    for (const kind of size.uploadStep === 0 ? KINDS : [...KINDS, RARE]) {
      const step = kind === RARE ? size.uploadStep : size.step;
      for (let after = 1 + (first % step); ; after += step) {
        name += 1;
        if (!(await service.strike({ ...mode, after }, kind(frames, `n${name}`)))) break;
      }
      // Other operations are tried of the next one.
      first += 1;
    }
  }
  await service.end();
  return service.counts;
}

class FailingService {
  readonly counts = { faults: 0, answered: 0, refused: 0, restarts: 0 };
  private readonly told: Told[] = [];
  private server: Server | undefined;
  private payer = { accountId: "", key: "" };

  constructor(private readonly stage: Stage) {}

  async begin(): Promise<void> {
    const { disk } = this.stage;
    this.server = await serveOn(this.stage, disk.data, disk.environment);
    this.payer = await payerBeside(this.stage);
  }

  /** Whether the request had that number of operations. */
  async strike(strike: Strike, ask: Ask): Promise<boolean> {
    const { disk } = this.stage;
    const what = `${ask.name}, ${strike.error} ${strike.lasting ? "from" : "at"} its operation ${strike.after}`;
    disk.strike(strike);
    const reply = await within(ANSWER_MS, what, ask.send(this.target));
    const struck = disk.strikes > 0;
    expectTold(reply, what);
    if (struck && strike.lasting) await this.expectRefusal(what);
    disk.mend();
    if (!struck) must(reply.status === 200, `${what}: ${reply.status} ${reply.said}, and nothing failed`);
    if (reply.status === 200) this.told.push({ ask, reply, operations: 0 });
    this.counts[reply.status === 200 ? "answered" : "refused"] += 1;
    this.counts.faults += Number(struck);
    if (struck) await this.expectBack(ask, reply, what);
    return struck;
  }

  /** All that was answered is there, each paid once. */
  async end(): Promise<void> {
    await this.expectAgain();
    must((await this.running.stop()) === 0, "the service ends in order");
    await expectPromises(this.stage.disk.data, { ...this.payer, told: this.told, keyTold: 0 }, 0);
  }

  private get running(): Server {
    if (!this.server) throw new Error("no service runs");
    return this.server;
  }

  private get target(): Target {
    return { url: this.running.ready.url, key: this.payer.key };
  }

  /** While every operation fails nothing is answered that must be kept, and the process lives. */
  private async expectRefusal(what: string): Promise<void> {
    const { frames } = this.stage;
    const { status, code, said } = await within(
      ANSWER_MS,
      what,
      chunk(frames, `during-${this.counts.faults}`).send(this.target),
    );
    must(status === 503 && CODES.includes(code ?? ""), `${what}: a chunk on a failing disk is ${status} ${said}`);
    const alive = await within(ANSWER_MS, what, fetch(`${this.running.ready.url}/healthz`));
    must(alive.status === 200, `${what}: /healthz is ${alive.status}`);
  }

  /** The disk is in order: the service is ready again, or says that it must be started again. The request has its answer then. */
  private async expectBack(ask: Ask, reply: Reply, what: string): Promise<void> {
    const missing = await this.missing();
    if (missing !== undefined) {
      must(missing.includes("the store does not answer"), `${what}: not ready, since ${missing}`);
      await this.restart();
    }
    const start = performance.now();
    for (;;) {
      const again = await within(ANSWER_MS, what, ask.again(this.target));
      if (reply.status === 200) must(again.said === reply.said, `${what}: said ${reply.said}, and now ${again.said}`);
      if (again.status === 200 || SPENT.includes(again.code ?? "")) {
        if (reply.status !== 200 && again.status === 200) {
          this.told.push({ ask, reply: again, operations: 0 });
        }
        return;
      }
      expectTold(again, `${what}, asked again`);
      must(performance.now() - start < BACK_MS, `${what}: still ${again.status} ${again.said}`);
      await Bun.sleep(PAUSE_MS);
    }
  }

  /** What `/readyz` says is missing, once it has not been for a while. */
  private async missing(): Promise<string | undefined> {
    const start = performance.now();
    for (;;) {
      const ready = await fetch(`${this.running.ready.url}/readyz`);
      const text = await ready.text();
      if (ready.status === 200) return undefined;
      if (performance.now() - start > 500) return text;
      await Bun.sleep(PAUSE_MS);
    }
  }

  private async restart(): Promise<void> {
    const { disk } = this.stage;
    this.counts.restarts += 1;
    must((await this.running.stop()) === 0, "a service whose store is down ends in order");
    disk.unlock();
    this.server = await serveOn(this.stage, disk.data, disk.environment);
    await this.expectAgain();
  }

  private async expectAgain(): Promise<void> {
    for (const { ask, reply } of this.told) {
      const again = await ask.again(this.target);
      const same = again.status === 200 && again.said === reply.said && (again.replayed || !ask.marked);
      must(same, `${ask.name} said ${reply.said}, and says now ${again.status} ${again.said}`);
      if (ask.name.startsWith("accepted")) await this.expectEnd(reply.said);
    }
  }

  /** A job that was accepted ends. */
  private async expectEnd(id: string): Promise<void> {
    const start = performance.now();
    for (;;) {
      const { object, status } = await get(this.target, id);
      must(status === 200, `the job ${id} is ${status}`);
      if (/^(completed|failed)$/.test(statusOf(object ?? "{}"))) return;
      must(performance.now() - start < BACK_MS, `the job ${id} does not end: ${object}`);
      await Bun.sleep(PAUSE_MS);
    }
  }
}

function expectTold({ status, code, said }: Reply, what: string): void {
  const refusal = (status === 503 || status === 409) && CODES.includes(code ?? "");
  must(status === 200 || refusal, `${what}: answered ${status} ${code} ${said}`);
}

async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${what}: no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
