/**
 * One robot of the control loop: it commands a row of its chunk per tick of 30 Hz. When few rows are left it captures frames,
 * sends its observation, and plays on until the next chunk comes. Deadlines are absolute: a late tick makes no later one late.
 */
import type { Clock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";

export const COMMAND_HZ = 30;
export const PERIOD_MS = 1000 / COMMAND_HZ;
/** Time between the capture of the frames, which are sent at once, and their observation: cameras need about 10 ms. */
export const CAPTURE_AHEAD_MS = 12;
/** Rows that must still be left when a chunk comes that took as long as the slowest one before it. */
export const MARGIN_ROWS = 5;

/**
 * An adaptive robot asks when at most that number of rows is left. Its rows are never late as long as the latency is below a chunk's
 * length; they are only older. A measurement that judges a service by its late rows gives a fixed number instead.
 */
export function adaptiveRowsAhead(worstLatencyMs: number): number {
  return Math.ceil((CAPTURE_AHEAD_MS + worstLatencyMs) / PERIOD_MS) + MARGIN_ROWS;
}

/** What answers a robot's observations. */
export interface Connection {
  /** Takes and sends the frames of the next observation. */
  capture(): void;
  /** How many rows the chunk has that came back. */
  observe(): Promise<number | Problem>;
}

/** The measured time, in the clock's milliseconds. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What is counted in the measured time; all robots write to one. */
export class Tally {
  /** Times from sending an observation to its chunk. */
  readonly latenciesMs: number[] = [];
  /** Ticks that were due: a row each. */
  rowsDue = 0;
  /** Due rows without a chunk at their deadline. */
  rowsWithoutChunk = 0;
  /** And fired over a period after it. */
  rowsTickedLate = 0;
  /** Between two commands of one robot. */
  longestGapMs = 0;
  /** Delay of each tick after its deadline. */
  readonly tickLatenessMs: number[] = [];
  /** Age of each commanded row since the capture of the frames that it answers. */
  readonly observationAgesMs: number[] = [];
}

export type LoopFigures = Readonly<Tally>;

/** Rows that are still to be played. */
interface Held {
  rows: number;
  readonly capturedMs: number;
  readonly arrivedMs: number;
}

export interface LoopRobotPlan {
  readonly clock: Clock;
  readonly connection: Connection;
  /** When it asks for its first chunk. */
  readonly beginMs: number;
  /** The robot asks when at most this number of rows is left; `adaptive`: by its slowest chunk so far. */
  readonly rowsAhead: number | "adaptive";
  readonly window: Window;
  readonly tally: Tally;
  /** Called when the first chunk has come and `nextMs` has changed. */
  readonly started: () => void;
  readonly failed: (problem: Problem) => void;
}

export class LoopRobot {
  /** The observation under way. */
  private asked: Promise<void> | undefined;
  /** At most the chunk that plays and the next one. */
  private readonly chunks: Held[] = [];
  private begun = false;
  /** True from the capture until the chunk has come. */
  private asking = false;
  private capturedMs = Number.NaN;
  private observeMs = Number.POSITIVE_INFINITY;
  private worstLatencyMs = 0;
  /** Time of tick 0; the robot stands still until its first chunk. */
  private startMs = Number.POSITIVE_INFINITY;
  private ticks = 0;
  private commandMs: number | undefined;

  constructor(private readonly plan: LoopRobotPlan) {}

  /** When `advance` has something to do. */
  get nextMs(): number {
    const { beginMs, window } = this.plan;
    if (!this.begun) return beginMs;
    const startsAnyway = this.startMs === Number.POSITIVE_INFINITY ? window.fromMs : this.dueMs;
    return Math.min(this.observeMs, startsAnyway);
  }

  advance(nowMs: number): void {
    const { fromMs, toMs } = this.plan.window;
    if (nowMs >= this.observeMs) this.observe();
    // A robot that has no chunk yet is late from the first measured moment on.
    if (nowMs >= fromMs) this.startMs = Math.min(this.startMs, fromMs);
    while (this.dueMs <= nowMs && this.dueMs < toMs) this.play(nowMs);
    if (nowMs >= this.plan.beginMs && nowMs < toMs && this.wantsChunk) this.capture(nowMs);
  }

  /** Waits for the observation under way, whose latency counts, and closes the last gap. */
  async end(): Promise<void> {
    await this.asked;
    this.gap(this.plan.window.toMs);
  }

  private get dueMs(): number {
    return this.startMs + this.ticks * PERIOD_MS;
  }

  private get wantsChunk(): boolean {
    if (this.asking || this.chunks.length > 1) return false;
    const { rowsAhead } = this.plan;
    const ahead = rowsAhead === "adaptive" ? adaptiveRowsAhead(this.worstLatencyMs) : rowsAhead;
    return (this.chunks[0]?.rows ?? 0) <= ahead;
  }

  private capture(nowMs: number): void {
    this.begun = true;
    this.asking = true;
    this.capturedMs = nowMs;
    this.plan.connection.capture();
    this.observeMs = nowMs + CAPTURE_AHEAD_MS;
  }

  private observe(): void {
    this.observeMs = Number.POSITIVE_INFINITY;
    const sentMs = this.plan.clock.monotonicMs();
    this.asked = this.plan.connection.observe().then((answer) => this.arrived(answer, sentMs));
  }

  private arrived(rows: number | Problem, sentMs: number): void {
    const { clock, window, tally, beginMs, started, failed } = this.plan;
    if (rows instanceof Problem) {
      failed(rows);
      return;
    }
    const arrivedMs = clock.monotonicMs();
    const latencyMs = arrivedMs - sentMs;
    this.worstLatencyMs = Math.max(this.worstLatencyMs, latencyMs);
    if (sentMs >= window.fromMs && sentMs < window.toMs) tally.latenciesMs.push(latencyMs);
    this.asking = false;
    this.chunks.push({ rows, capturedMs: this.capturedMs, arrivedMs });
    if (this.startMs !== Number.POSITIVE_INFINITY) return;
    // Ticks stay in phase with the robot's beginning, whenever the chunk comes.
    this.startMs = beginMs + Math.ceil((arrivedMs - beginMs) / PERIOD_MS) * PERIOD_MS;
    started();
  }

  /** One tick: a row is commanded, or the robot holds its position. */
  private play(nowMs: number): void {
    const { dueMs } = this;
    const { tally, window } = this.plan;
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
    const { tally, window } = this.plan;
    tally.longestGapMs = Math.max(tally.longestGapMs, untilMs - (this.commandMs ?? window.fromMs));
  }
}
