/**
 * The control loop of robots that overlap inference with execution, over a warm-up and a measured time. One timer serves all
 * robots, so that the loop itself takes little of the machine. What a robot commands goes nowhere; what counts is whether and
 * when it had a row to command.
 */
import type { Clock } from "../../std/clock.ts";
import type { Problem } from "../../std/problem.ts";
import { RandomStream } from "../../std/random.ts";
import { type Connection, type LoopFigures, LoopRobot, type LoopRobotPlan, Tally, type Window } from "./loop-robot.ts";

export interface LoopPlan extends Pick<LoopRobotPlan, "rowsAhead"> {
  readonly clock: Clock;
  /** One per robot. */
  readonly connections: readonly Connection[];
  /** Robots begin at random moments of this time, the same every time: real ones are not synchronized. */
  readonly spreadMs: number;
  /** Time between the last robot's beginning and the measured time. */
  readonly warmupMs: number;
  readonly measuredMs: number;
}

export async function runLoop(plan: LoopPlan): Promise<LoopFigures | Problem> {
  return await new ControlLoop(plan).run();
}

class ControlLoop {
  private readonly tally = new Tally();
  private readonly window: Window;
  private readonly robots: readonly LoopRobot[];
  private readonly ended = Promise.withResolvers<void>();
  private problem: Problem | undefined;
  private cancel = () => {};

  constructor(private readonly plan: LoopPlan) {
    const { clock, connections, spreadMs, warmupMs, measuredMs, rowsAhead } = plan;
    const { tally } = this;
    const beganMs = clock.monotonicMs();
    const fromMs = beganMs + spreadMs + warmupMs;
    const window = { fromMs, toMs: fromMs + measuredMs };
    const started = (): void => this.started();
    const failed = (problem: Problem): void => this.failed(problem);
    const moments = new RandomStream("control-loop moments");
    this.window = window;
    this.robots = connections.map((connection) => {
      const beginMs = beganMs + (moments.word() / 2 ** 32) * spreadMs;
      return new LoopRobot({ clock, connection, beginMs, rowsAhead, window, tally, started, failed });
    });
  }

  async run(): Promise<LoopFigures | Problem> {
    this.arm();
    await this.ended.promise;
    // The slowest observations of the measured time may still be under way. After a problem nobody waits for them.
    if (this.problem === undefined) await Promise.all(this.robots.map((robot) => robot.end()));
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

  private failed(problem: Problem): void {
    this.problem ??= problem;
    this.cancel();
    this.ended.resolve();
  }

  private started(): void {
    if (this.problem === undefined && this.plan.clock.monotonicMs() < this.window.toMs) this.arm();
  }
}
