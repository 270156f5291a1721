/** Which observations get the engine's permits, and which wait for them in which order. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../src/limits.ts";
import { Admission, type Permit } from "../../src/robot/admission.ts";
import { assert, present } from "../../src/std/assert.ts";
import { Failure } from "../../src/std/failure.ts";
import { RandomStream } from "../../src/std/random.ts";

const SMALL = { ...LIMITS, framesMax: 20, chunksMax: 8, accountFramesMax: 16, accountChunksMax: 6 };

/** A permit that must not be refused. */
function take(admission: Admission, account: string, frames = 1, model = "m"): Permit {
  const permit = admission.take(account, model, frames);
  assert(!(permit instanceof Failure), "the queue has room");
  return permit;
}

function isGranted(permit: Permit): boolean {
  return Bun.peek.status(permit.granted) === "fulfilled";
}

function granted(permits: Readonly<Record<string, Permit>>): string {
  return Object.entries(permits)
    .filter(([, permit]) => isGranted(permit))
    .map(([name]) => name)
    .join(" ");
}

/** The names in the order in which they are granted: each ends before the next, `running` before all. */
function turnsOf(waiting: Readonly<Record<string, Permit>>, running: Permit): string[] {
  const left = { ...waiting };
  const order: string[] = [];
  running.release();
  while (Object.keys(left).length > 0) {
    const name = granted(left);
    const next = present(left[name], "exactly one that was granted");
    delete left[name];
    order.push(name);
    next.release();
  }
  return order;
}

function counts({ held, waiting }: Admission): number[] {
  return [held, waiting];
}

test("an account has its share at once and no more; others find permits at once", () => {
  const admission = new Admission(LIMITS, () => 2);
  const inferences = Math.floor(LIMITS.accountFramesMax / 3);
  const many = Array.from({ length: 1_000 }, () => take(admission, "a", 3));
  expect(many.filter(isGranted).length).toBe(inferences);
  expect(isGranted(take(admission, "b", 3))).toBe(true);
  // Each model has its own frame permits.
  const otherModel = take(admission, "a", 3, "n");
  expect([isGranted(otherModel), ...counts(admission)]).toEqual([true, inferences + 2, 1_000 - inferences]);
});

test("models that hang hold up no other one, of the same accounts neither", () => {
  const served = ["hangs", "hangs too", "works"];
  const admission = new Admission(LIMITS, () => served.length);
  const flood = (account: string) => {
    const all = Array.from({ length: 200 }, (_, index) => take(admission, account, 1, served[index % 2]));
    return all.filter(isGranted).length;
  };
  // What is kept for the third: of a quarter a third, of an account's share and of all permits.
  const own = LIMITS.accountChunksMax - Math.floor(LIMITS.accountChunksMax / 12);
  const all = LIMITS.chunksMax - Math.floor(LIMITS.chunksMax / 12);
  expect([flood("a"), flood("b")]).toEqual([own, all - own]);
  const elsewhere = ["a", "b", "c"].map((account) => take(admission, account, 3, "works"));
  expect(elsewhere.map(isGranted)).toEqual([true, true, true]);
  expect(isGranted(take(admission, "c", 1, "hangs"))).toBe(false);
});

test("one model has all inference permits, since there is no other", () => {
  const admission = new Admission();
  const accounts = ["a", "b"].map((account) => Array.from({ length: 100 }, () => take(admission, account)));
  expect(accounts.map((permits) => permits.filter(isGranted).length)).toEqual([
    LIMITS.accountChunksMax,
    LIMITS.chunksMax - LIMITS.accountChunksMax,
  ]);
});

test("an account that asks for many models has no more turns than another one", () => {
  const admission = new Admission({ ...SMALL, chunksMax: 1 }, () => 3);
  const running = take(admission, "x");
  const waiting = Object.fromEntries(
    ["am1", "am2", "an1", "ao1", "bm1", "bm2"].map((name) => [
      name,
      take(admission, name.charAt(0), 1, name.charAt(1)),
    ]),
  );
  expect(turnsOf(waiting, running)).toEqual(["am1", "bm1", "an1", "bm2", "ao1", "am2"]);
});

test("an account's share of inferences counts over all models", () => {
  const admission = new Admission(LIMITS, () => 3);
  const permits = Array.from({ length: 100 }, (_, index) => take(admission, "a", 1, `m${index % 3}`));
  expect(permits.map(isGranted)).toEqual(permits.map((_, index) => index < LIMITS.accountChunksMax));
  expect(isGranted(take(admission, "b"))).toBe(true);
});

test("accounts take turns for a model, and within one the first to come is the first to go", () => {
  const admission = new Admission({ ...SMALL, chunksMax: 1 });
  const running = take(admission, "x");
  const waiting = Object.fromEntries(
    ["a1", "a2", "a3", "b1", "c1", "b2"].map((name) => [name, take(admission, name.charAt(0))]),
  );
  expect(turnsOf(waiting, running)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(counts(admission)).toEqual([0, 0]);
});

test("an account whose first does not fit is passed over, and keeps its turn", () => {
  const admission = new Admission(SMALL);
  const [large, small] = [take(admission, "a", 15), take(admission, "a", 1)];
  const permits = { a: take(admission, "a", 4), b: take(admission, "b", 2), other: take(admission, "c", 9, "n") };
  expect(granted(permits)).toBe("b other");
  small.release();
  expect(granted(permits)).toBe("b other");
  large.release();
  expect(granted(permits)).toBe("a b other");
});

test("frames that come free are kept for a large observation that was passed over: small ones cannot starve it", () => {
  const admission = new Admission({ ...SMALL, chunksMax: 100 });
  let running = Array.from({ length: 10 }, (_, index) => take(admission, `small-${index}`, 2));
  const large = take(admission, "large", 16);
  const later = Array.from({ length: 10 }, (_, index) => take(admission, `small-${index}`, 2));
  const elsewhere = take(admission, "other", 3, "n");
  let released = 0;
  while (!isGranted(large)) {
    const [first, ...rest] = running;
    present(first, "a permit that is held").release();
    released += 1;
    running = [...rest, take(admission, `new-${released}`, 2)].filter(isGranted);
  }
  expect([released, later.some(isGranted), isGranted(elsewhere)]).toEqual([8, false, true]);
  large.release();
  expect(later.filter(isGranted).length).toBe(8);
});

test("an account without a turn behind a large observation goes on when that one gives up", () => {
  const admission = new Admission(SMALL);
  take(admission, "a", 10);
  const large = take(admission, "b", 12);
  const small = take(admission, "c", 2);
  expect(isGranted(small)).toBe(false);
  large.release();
  expect([isGranted(small), isGranted(large), ...counts(admission)]).toEqual([true, false, 2, 0]);
});

test("the queues are bounded, per account and in all; an observation that fits needs none", () => {
  const admission = new Admission({ ...SMALL, accountWaitingMax: 3, admissionWaitingMax: 5 }, () => 2);
  for (let count = 0; count < SMALL.accountChunksMax; count += 1) take(admission, "a");
  const waiting = Array.from({ length: 3 }, () => take(admission, "a"));
  const refused = admission.take("a", "m", 1);
  expect(refused).toMatchObject({
    code: "engine_unavailable",
    message: "3 observations of this account wait already, the most that may wait; retry when some are answered",
    retryAfterSeconds: 1,
  });
  take(admission, "b", 16);
  take(admission, "c", 16);
  expect(admission.take("d", "m", 16)).toMatchObject({
    code: "engine_unavailable",
    message: "5 observations wait already, the most that may wait; retry when some are answered",
    retryAfterSeconds: 1,
  });
  expect(isGranted(take(admission, "d", 1, "n"))).toBe(true);
  expect(counts(admission)).toEqual([7, 5]);
  waiting[1]?.release();
  expect(admission.take("a", "m", 1)).not.toBeInstanceOf(Failure);
});

test("an observation that gives up leaves the queue; one that was granted a permit the moment before gives it back; twice is once", () => {
  const admission = new Admission({ ...SMALL, chunksMax: 1 });
  const running = take(admission, "a");
  const [leaves, meets, next] = [take(admission, "a"), take(admission, "a"), take(admission, "a")];
  leaves.release();
  leaves.release();
  expect(counts(admission)).toEqual([1, 2]);
  running.release();
  expect([isGranted(leaves), isGranted(meets), ...counts(admission)]).toEqual([false, true, 1, 1]);
  meets.release();
  meets.release();
  running.release();
  expect([isGranted(next), ...counts(admission)]).toEqual([true, 1, 0]);
  next.release();
  expect(counts(admission)).toEqual([0, 0]);
});

/** A permit of a random history. */
interface Taken {
  readonly index: number;
  readonly account: string;
  readonly model: string;
  readonly frames: number;
  readonly permit: Permit;
  held: boolean;
  /** Accounts that were granted the same model since the last turn of this one's account, while this one was first of its line and within its share. */
  readonly passedBy: string[];
}

const MODELS = ["model 0", "model 1", "model 2"];

/** Whether what is kept for the other models is left, with `inferences` more of one: a quarter of `max` is kept, in equal parts. */
function leavesTheirs(max: number, model: string, held: (model: string) => number, inferences = 1): boolean {
  const kept = Math.floor(max / 4 / MODELS.length);
  const needed = MODELS.map((one) => Math.max(held(one) + (one === model ? inferences : 0), kept));
  return needed.reduce((sum, count) => sum + count, 0) <= max;
}

/** Bounds that keep something for each model, of an account and of all permits. */
const HISTORY = { ...SMALL, chunksMax: 14, accountChunksMax: 12 };

/** What must hold after each step, kept without any of the queue's own structures. */
class Watch {
  private readonly live = new Set<Taken>();
  /** Permits in the order in which they were granted. */
  private readonly fresh: Taken[] = [];
  grants = 0;
  passes = 0;

  constructor(private readonly admission: Admission) {}

  get taken(): readonly Taken[] {
    return [...this.live];
  }

  add(taken: Taken): void {
    this.live.add(taken);
    taken.permit.granted.then(() => this.fresh.push(taken)).catch(() => {});
  }

  release(taken: Taken): void {
    this.live.delete(taken);
    taken.permit.release();
  }

  async check(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await Promise.resolve();
    for (const taken of this.fresh.splice(0)) this.grant(taken);
    const held = this.taken.filter((one) => one.held);
    const waiting = this.taken.filter((one) => !one.held);
    assert(this.admission.held === held.length, "as many hold permits as were granted one");
    assert(this.admission.waiting === waiting.length, "as many wait as are left");
    assert(held.length <= HISTORY.chunksMax, "inference permits suffice");
    for (const { account, model } of held) {
      assert(leavesTheirs(HISTORY.chunksMax, model, this.inferencesOf, 0), "no model has what is kept for the others");
      assert(this.framesOf((one) => one.model === model) <= HISTORY.framesMax, "frame permits suffice");
      assert(this.mayHold({ account, model, frames: 0 }, 0), "an account keeps to its share");
    }
    const firsts = waiting.filter((one) => this.isFirst(one) && this.mayHold(one));
    for (const first of firsts) {
      const kept = firsts.some((other) => other.model === first.model && !this.fits(other));
      assert(held.length === HISTORY.chunksMax || kept || !this.fits(first), "no observation waits for what is free");
    }
  }

  private grant(taken: Taken): void {
    if (!this.live.has(taken)) return;
    assert(this.isFirst(taken), "within a line the first to come is the first to go");
    for (const other of this.live) {
      if (other.held) continue;
      if (other.account === taken.account) other.passedBy.length = 0;
      if (other.account === taken.account || other.model !== taken.model) continue;
      if (!this.isFirst(other) || !this.mayHold(other)) continue;
      assert(!other.passedBy.includes(taken.account), "an account passes a waiting one once between two of its turns");
      other.passedBy.push(taken.account);
      this.passes += 1;
    }
    taken.held = true;
    this.grants += 1;
  }

  private isFirst(taken: Taken): boolean {
    const isAhead = ({ account, model, index, held }: Taken) =>
      !held && account === taken.account && model === taken.model && index < taken.index;
    return !this.taken.some(isAhead);
  }

  private fits({ model, frames }: Taken): boolean {
    return (
      leavesTheirs(HISTORY.chunksMax, model, this.inferencesOf) &&
      this.framesOf((one) => one.model === model) + frames <= HISTORY.framesMax
    );
  }

  private mayHold({ account, model, frames }: Pick<Taken, "account" | "model" | "frames">, inferences = 1): boolean {
    const own = (of: string) =>
      this.taken.filter((one) => one.held && one.account === account && one.model === of).length;
    const ownFrames = this.framesOf((one) => one.account === account && one.model === model);
    const inferencesFit = leavesTheirs(HISTORY.accountChunksMax, model, own, inferences);
    return inferencesFit && ownFrames + frames <= HISTORY.accountFramesMax;
  }

  private readonly inferencesOf = (model: string) => this.taken.filter((one) => one.held && one.model === model).length;

  private framesOf(which: (taken: Taken) => boolean): number {
    return this.taken.filter((one) => one.held && which(one)).reduce((sum, { frames }) => sum + frames, 0);
  }
}

test("random histories of several accounts and models keep shares, order and turns, and end with nothing held", async () => {
  let passes = 0;
  for (let history = 0; history < 20; history += 1) {
    const random = new RandomStream(`admission ${history}`);
    const below = (bound: number) => random.word() % bound;
    const admission = new Admission(HISTORY, () => MODELS.length);
    const watch = new Watch(admission);
    for (let step = 0; step < 400; step += 1) {
      const { taken } = watch;
      // The queue grows, then shrinks, then grows again.
      if (below(100) < (step % 200 < 100 ? 60 : 40) || taken.length === 0) {
        const [account, model] = [`account ${below(5)}`, MODELS[below(MODELS.length)] ?? ""];
        const frames = [1, 3, 3, 12, 16][below(5)] ?? 1;
        const permit = take(admission, account, frames, model);
        watch.add({ index: step, account, model, frames, permit, held: false, passedBy: [] });
      } else {
        watch.release(present(taken[below(taken.length)], "a permit"));
      }
      await watch.check();
    }
    for (const taken of watch.taken) {
      watch.release(taken);
      await watch.check();
    }
    expect(counts(admission)).toEqual([0, 0]);
    expect(watch.grants).toBeGreaterThan(50);
    passes += watch.passes;
  }
  // Otherwise the histories would prove nothing about turns.
  expect(passes).toBeGreaterThan(100);
});
