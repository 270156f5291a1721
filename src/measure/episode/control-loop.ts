/**
 * The control loop of robots that overlap inference with execution: each has a command clock of 30 Hz and plays one row of its
 * chunk per tick; while the last rows still play, it captures frames, sends its observation and gets the next chunk.
 *
 * Deadlines are absolute: a late tick makes no later one late. One timer serves all robots, so that the loop itself takes next
 * to nothing of the machine. What a robot commands goes nowhere; what counts is whether and when it had something to command.
 */
import { Problem } from "../../error/problem.ts";
import type { Clock } from "../../std/clock.ts";
import { RandomStream } from "../../std/random.ts";

export const COMMAND_HZ = 30;
export const PERIOD_MS = 1000 / COMMAND_HZ;
/** From the capture of the frames, which are sent at once, to the observation that they belong to: over the 10 ms that cameras need. */
export const CAPTURE_AHEAD_MS = 12;
/** Rows that shall still be there when a chunk comes that took as long as the slowest one before it. */
export const MARGIN_ROWS = 5;

/**
 * A robot that adapts asks when so many rows, or fewer, are left. It hides every latency below a chunk's length: its rows are
 * there, only older. Whoever judges a service by its late rows gives a fixed number instead.
 */
export function adaptiveRowsAhead(worstLatencyMs: number): number {
  return Math.ceil((CAPTURE_AHEAD_MS + worstLatencyMs) / PERIOD_MS) + MARGIN_ROWS;
}

/** Whoever answers a robot's observations. */
export interface Connection {
  /** Takes and sends the frames of the next observation. */
  capture(): void;
  /** How many rows the chunk has that came back. */
  observe(): Promise<number | Problem>;
}

export interface LoopPlan {
  readonly clock: Clock;
  /** One per robot. */
  readonly connections: readonly Connection[];
  /** The robots begin at random moments of this time, the same in every run: real ones know nothing of each other. */
  readonly spreadMs: number;
  /** A robot asks when so many rows, or fewer, are left; `adaptive`: by its slowest chunk so far. */
  readonly rowsAhead: number | "adaptive";
  /** From the last robot's beginning to the measured time. */
  readonly warmupMs: number;
  readonly measuredMs: number;
}

/** What was counted in the measured time, over all robots. */
export interface LoopFigures {
  /** From an observation that is sent to its chunk. */
  readonly latenciesMs: readonly number[];
  /** Ticks that were due: a row each. */
  readonly rowsDue: number;
  /** Of these, without a chunk at their deadline. */
  readonly rowsWithoutChunk: number;
  /** And fired over a period after it. */
  readonly rowsTickedLate: number;
  /** Between two commands of one robot. */
  readonly longestGapMs: number;
  /** Of each tick after its deadline. */
  readonly tickLatenessMs: readonly number[];
  /** Of each commanded row: since the capture of the frames that it is the answer to. */
  readonly observationAgesMs: readonly number[];
}

export async function runLoop(plan: LoopPlan): Promise<LoopFigures | Problem> {
  return await new ControlLoop(plan).run();
}

/** The measured time, in the clock's milliseconds. */
interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What all robots write to. */
interface Tally {
  readonly latenciesMs: number[];
  readonly tickLatenessMs: number[];
  readonly observationAgesMs: number[];
  rowsDue: number;
  rowsWithoutChunk: number;
  rowsTickedLate: number;
  longestGapMs: number;
}

class ControlLoop {
  private readonly tally: Tally = {
    latenciesMs: [],
    tickLatenessMs: [],
    observationAgesMs: [],
    rowsDue: 0,
    rowsWithoutChunk: 0,
    rowsTickedLate: 0,
    longestGapMs: 0,
  };
  private readonly window: Window;
  private readonly robots: readonly Robot[];
  private readonly ended = Promise.withResolvers<void>();
  private problem: Problem | undefined;
  private cancel = () => {};

  constructor(private readonly plan: LoopPlan) {
    const { clock, connections, spreadMs, warmupMs, measuredMs, rowsAhead } = plan;
    const beganMs = clock.monotonicMs();
    const fromMs = beganMs + spreadMs + warmupMs;
    this.window = { fromMs, toMs: fromMs + measuredMs };
    const heard = (problem: Problem | undefined): void => this.heard(problem);
    const moments = new RandomStream("control-loop moments");
    this.robots = connections.map((connection) => {
      const beginMs = beganMs + (moments.word() / 2 ** 32) * spreadMs;
      return new Robot(clock, connection, beginMs, rowsAhead, this.window, this.tally, heard);
    });
  }

  async run(): Promise<LoopFigures | Problem> {
    this.arm();
    await this.ended.promise;
    if (this.problem !== undefined) return this.problem;
    // Observations of the measured time whose chunk is still to come: the slowest ones may be among them.
    await Promise.all(this.robots.map((robot) => robot.asked));
    for (const robot of this.robots) robot.end();
    return this.problem ?? this.tally;
  }

  private tick(): void {
    const nowMs = this.plan.clock.monotonicMs();
    for (const robot of this.robots) robot.advance(nowMs);
    if (nowMs >= this.window.toMs) this.ended.resolve();
    else this.arm();
  }

  private arm(): void {
    this.cancel();
    const { clock } = this.plan;
    const nextMs = Math.min(this.window.toMs, ...this.robots.map((robot) => robot.nextMs));
    this.cancel = clock.after(Math.max(0, Math.ceil(nextMs - clock.monotonicMs())), () => this.tick());
  }

  private heard(problem: Problem | undefined): void {
    this.problem ??= problem;
    if (this.problem !== undefined) {
      this.cancel();
      this.ended.resolve();
      return;
    }
    // Its first chunk has started a robot's clock.
    if (this.plan.clock.monotonicMs() < this.window.toMs) this.arm();
  }
}

/** Rows that are still to be played. */
interface Held {
  rows: number;
  readonly capturedMs: number;
  readonly arrivedMs: number;
}

class Robot {
  /** The observation under way. */
  asked: Promise<void> | undefined;
  /** At most the chunk that plays and the next one. */
  private readonly chunks: Held[] = [];
  private begun = false;
  /** From the capture until the chunk has come. */
  private asking = false;
  private capturedMs = Number.NaN;
  private observeMs = Number.POSITIVE_INFINITY;
  private worstLatencyMs = 0;
  /** Of tick 0; the robot stands still until its first chunk. */
  private startMs = Number.POSITIVE_INFINITY;
  private ticks = 0;
  private commandMs: number | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly connection: Connection,
    private readonly beginMs: number,
    private readonly rowsAhead: LoopPlan["rowsAhead"],
    private readonly window: Window,
    private readonly tally: Tally,
    private readonly heard: (problem: Problem | undefined) => void,
  ) {}

  /** When there is something to do. */
  get nextMs(): number {
    if (!this.begun) return this.beginMs;
    const startsAnyway = this.startMs === Number.POSITIVE_INFINITY ? this.window.fromMs : this.dueMs;
    return Math.min(this.observeMs, startsAnyway);
  }

  advance(nowMs: number): void {
    const { fromMs, toMs } = this.window;
    if (nowMs >= this.observeMs) this.observe();
    // A robot that has no chunk yet is late from the first measured moment on.
    if (nowMs >= fromMs) this.startMs = Math.min(this.startMs, fromMs);
    while (this.dueMs <= nowMs && this.dueMs < toMs) this.play(nowMs);
    if (nowMs >= this.beginMs && nowMs < toMs && this.wantsChunk) this.capture(nowMs);
  }

  /** No command has come since. */
  end(): void {
    this.gap(this.window.toMs);
  }

  private get dueMs(): number {
    return this.startMs + this.ticks * PERIOD_MS;
  }

  private get wantsChunk(): boolean {
    if (this.asking || this.chunks.length > 1) return false;
    const ahead = this.rowsAhead === "adaptive" ? adaptiveRowsAhead(this.worstLatencyMs) : this.rowsAhead;
    return (this.chunks[0]?.rows ?? 0) <= ahead;
  }

  private capture(nowMs: number): void {
    this.begun = true;
    this.asking = true;
    this.capturedMs = nowMs;
    this.connection.capture();
    this.observeMs = nowMs + CAPTURE_AHEAD_MS;
  }

  private observe(): void {
    this.observeMs = Number.POSITIVE_INFINITY;
    const sentMs = this.clock.monotonicMs();
    this.asked = this.connection.observe().then((answer) => this.arrived(answer, sentMs));
  }

  private arrived(rows: number | Problem, sentMs: number): void {
    if (rows instanceof Problem) {
      this.heard(rows);
      return;
    }
    const arrivedMs = this.clock.monotonicMs();
    const latencyMs = arrivedMs - sentMs;
    this.worstLatencyMs = Math.max(this.worstLatencyMs, latencyMs);
    if (sentMs >= this.window.fromMs && sentMs < this.window.toMs) this.tally.latenciesMs.push(latencyMs);
    this.asking = false;
    this.chunks.push({ rows, capturedMs: this.capturedMs, arrivedMs });
    if (this.startMs !== Number.POSITIVE_INFINITY) return;
    // The clock ticks in the phase of the robot's beginning, whenever the chunk has come.
    this.startMs = this.beginMs + Math.ceil((arrivedMs - this.beginMs) / PERIOD_MS) * PERIOD_MS;
    this.heard(undefined);
  }

  /** One tick: a row is commanded, or the robot holds what it has. */
  private play(nowMs: number): void {
    const { dueMs, tally, window } = this;
    const counts = dueMs >= window.fromMs;
    const [chunk] = this.chunks;
    this.ticks += 1;
    if (counts) {
      tally.rowsDue += 1;
      tally.tickLatenessMs.push(nowMs - dueMs);
      if (chunk === undefined || chunk.arrivedMs > dueMs) tally.rowsWithoutChunk += 1;
      else if (nowMs - dueMs > PERIOD_MS) tally.rowsTickedLate += 1;
    }
    if (chunk === undefined) return;
    chunk.rows -= 1;
    if (chunk.rows === 0) this.chunks.shift();
    if (counts) {
      tally.observationAgesMs.push(nowMs - chunk.capturedMs);
      this.gap(nowMs);
    }
    this.commandMs = nowMs;
  }

  private gap(untilMs: number): void {
    const sinceMs = this.commandMs ?? this.window.fromMs;
    this.tally.longestGapMs = Math.max(this.tally.longestGapMs, untilMs - sinceMs);
  }
}
