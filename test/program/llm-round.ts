/** What became of the requests of one round, whose service was killed under load: nothing was lost, sent twice or charged twice. */
import type { Books, Payer } from "./books.ts";
import { type CountedProvider, PRICE } from "./counted-provider.ts";
import { type Answer, ask, get, polled, type Sent, statusOf } from "./llm-clients.ts";
import type { Target } from "./payers.ts";

/** Figures of one round or of many. */
export interface LlmTally {
  /** Live answers, plain ones and streams, that were read whole: all of them are given again. */
  readonly live: number;
  /** Jobs that were accepted: all of them end. */
  readonly jobs: number;
  /** Jobs that failed because their process was killed. */
  readonly jobsFailed: number;
  /** Requests without an answer. */
  readonly unanswered: number;
  /** Unanswered requests whose response was kept, and is there for the repeat. */
  readonly kept: number;
  /** Unanswered requests of which nothing was kept, and whose repeat ran. */
  readonly ran: number;
  /** Unanswered requests for which the provider may have been called, and whose key is spent. */
  readonly terminal: number;
}

/** Requests that are under way at once. */
const AT_ONCE = 16;

export class Round {
  /** Responses that completed: exactly these were charged. */
  private readonly completed = new Set<string>();
  private readonly counts = { live: 0, jobs: 0, jobsFailed: 0, unanswered: 0, kept: 0, ran: 0, terminal: 0 };

  constructor(
    readonly payer: Payer,
    private readonly log: readonly Sent[],
    private readonly provider: CountedProvider,
  ) {}

  /** At once after the restart: what a client has read is there, byte for byte. */
  async expectKept(target: Target): Promise<void> {
    await this.each(async (sent) => {
      const { kind, key, answer } = sent;
      if (kind === "job") return await this.expectAccepted(target, sent);
      if (answer.object === undefined) return;
      const [again, once, shown] = [
        await ask(target, kind, key),
        await ask(target, kind, key),
        await this.shown(target, answer),
      ];
      must(again.replayed && again.object === answer.object, `${key} was answered, its repeat is ${told(again)}`);
      must(kind === "stream" || again.text === answer.text, `${key} is given again with other bytes`);
      must(once.text === again.text, `${key} is given again in two ways`);
      must(shown === answer.object, `${key} was answered, GET shows something else`);
      this.ended(key, answer.object, "completed");
      this.counts.live += 1;
    });
  }

  /** When all that dead processes ran has been ended. */
  async expectEnded(books: Books, target: Target): Promise<LlmTally> {
    await this.each(async (sent) => {
      const { kind, answer, polled: end } = sent;
      if (kind === "job" && answer.status === 200 && end === undefined) await this.expectJob(target, sent);
      else if (answer.status === 0) await this.expectRepeat(target, sent);
    });
    for (const { key } of this.log)
      must((this.provider.calls.get(key) ?? 0) <= 1, `${key} was sent to the provider twice`);
    const charges = await books.charges(this.payer);
    const ids = charges.map(({ id }) => id).join();
    must(ids === [...this.completed].sort().join(), "the responses that were charged are not those that completed");
    must(
      charges.every(({ cost }) => cost === PRICE),
      "a response was not settled at its price",
    );
    const { settled, held } = await books.money(this.payer);
    must(settled === BigInt(charges.length) * PRICE, "the account's total is not that of its responses");
    must(held === 0n, "something is held although nothing runs");
    return this.counts;
  }

  /** A job that a client knows of: it is there, and if it has ended for that client, as it was. */
  private async expectAccepted(target: Target, { key, answer, polled: end }: Sent): Promise<void> {
    if (answer.status === 0) return;
    this.counts.jobs += 1;
    const shown = await this.shown(target, answer);
    must(end === undefined || shown === end, `${key} had ended, GET shows something else`);
    if (end === undefined) return;
    const again = await ask(target, "job", key);
    must(again.replayed && again.object === end, `${key} had ended, its repeat is ${told(again)}`);
    this.ended(key, end, "completed");
  }

  /** A job whose client has not seen its end. */
  private async expectJob(target: Target, { key, answer }: Sent): Promise<void> {
    const end = await polled(target, answer.id ?? "");
    must(end !== undefined, `${key} was accepted, and cannot be polled`);
    this.ended(key, end ?? "", "completed", "failed");
  }

  /** A request without an answer, sent again with its key. */
  private async expectRepeat(target: Target, { kind, key, answer }: Sent): Promise<void> {
    this.counts.unanswered += 1;
    const called = this.provider.calls.get(key) ?? 0;
    const again = await ask(target, kind, key);
    if (again.code === "idempotency_replay_terminal" && kind !== "job") {
      this.counts.terminal += 1;
      if (answer.id !== undefined) this.ended(key, (await this.shown(target, answer)) ?? "", "failed");
      return;
    }
    must(again.object !== undefined, `${key} was not answered, its repeat is ${told(again)}`);
    const end = kind === "job" ? await polled(target, again.id ?? "") : again.object;
    if (again.replayed) this.counts.kept += 1;
    else this.counts.ran += 1;
    must(again.replayed || called === 0, `${key} was sent to the provider, and ran again`);
    must(answer.id === undefined || answer.id === again.id, `${key} had another id`);
    if (kind === "job" && again.replayed) this.ended(key, end ?? "", "completed", "failed");
    else this.ended(key, end ?? "", "completed");
  }

  private async shown(target: Target, { id }: Answer): Promise<string | undefined> {
    const { status, object } = await get(target, id ?? "");
    must(status === 200, `GET of ${id} is ${status}`);
    return object;
  }

  /** The response has this as its end, for good. */
  private ended(key: string, object: string, ...statuses: readonly string[]): void {
    const { id, error } = JSON.parse(object) as { id: string; error: { code: string } | null };
    const status = statusOf(object);
    must(statuses.includes(status), `${key} is ${status}`);
    if (status === "completed") {
      must(object.includes(`Answer 1 to ${key}:`), `${key} has the answer of another key`);
      must(this.provider.calls.get(key) === 1, `${key} completed without one call of the provider`);
      this.completed.add(id);
    } else {
      must(error?.code === "server_error", `${key} failed with ${error?.code}`);
      if (key.includes("-job-")) this.counts.jobsFailed += 1;
    }
  }

  private async each(look: (sent: Sent) => Promise<void>): Promise<void> {
    for (let from = 0; from < this.log.length; from += AT_ONCE) {
      await Promise.all(this.log.slice(from, from + AT_ONCE).map(look));
    }
  }
}

function told({ status, code, replayed }: Answer): string {
  return `${status} ${code ?? (replayed ? "replayed" : "not replayed")}`;
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
