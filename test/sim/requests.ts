/** What robots of a history ask over HTTP. */
import { checkReply } from "./check.ts";
import { inBackground } from "./gates.ts";
import type { History, Robot } from "./history.ts";
import { owed, type Sent } from "./trace.ts";

/** A request of a robot. */
export interface RobotSent extends Sent {
  readonly robot: Robot;
  readonly body: Record<string, unknown>;
  readonly account: number;
  readonly mark: number;
  readonly client: AbortController;
  readonly replies: Reply[];
}

export interface Reply {
  readonly status: number;
  readonly text: string;
  readonly generationId: string | null;
  readonly step: string | null;
  readonly replayed: boolean;
}

export class Requests {
  readonly sent: RobotSent[] = [];

  constructor(private readonly history: History) {}

  /** Somebody is owed a reply. */
  get waits(): boolean {
    return owed(this.sent).length > 0;
  }

  send(robot: Robot): void {
    const { history } = this;
    const { cameras, frames, id: model } = history.manifest(robot);
    const right = cameras.length * (robot.step === 0 ? frames.first : frames.later);
    const images = history.below(25) === 0 ? right + 1 : right;
    const bad = history.below(25) === 0 ? history.below(images) : -1;
    const part = (index: number) => {
      const jpeg = index === bad ? history.pictures.bad : history.pictures.good;
      return { type: "image_url", image_url: { url: `data:image/jpeg;base64,${jpeg.toBase64()}` } };
    };
    const content = [
      { type: "text", text: history.below(30) === 0 ? "another task" : "fold the towel" },
      ...Array.from({ length: images }, (_, index) => part(index)),
    ];
    const named = history.below(3) > 0;
    const mark = history.mark({ account: robot.account, session: robot.sessionId, mayRepeat: !named });
    this.post(robot, mark, {
      model,
      messages: [{ role: "user", content }],
      robot_state: history.stateOf(mark, robot),
      seed: mark,
      stream: history.below(3) === 0,
      ...(history.below(6) === 0 ? { deadline_ms: 1 + history.below(12_000) } : {}),
      ...(robot.sessionId === undefined ? {} : { session_id: robot.sessionId }),
      ...(named ? { observation_id: `o${mark}` } : {}),
      ...(history.below(2) > 0 ? { expected_step: robot.step } : {}),
    });
  }

  /** The same request once more, byte for byte. */
  again(): void {
    const earlier = this.sent.filter(({ body }) => body.observation_id !== undefined);
    if (earlier.length === 0) return;
    const { robot, mark, body } = this.history.pick(earlier);
    this.post(robot, mark, body);
  }

  /** An observation_id with other content. */
  conflict(): void {
    const { history } = this;
    const earlier = this.sent.filter(({ body }) => body.observation_id !== undefined);
    if (earlier.length === 0) return;
    const { robot, body } = history.pick(earlier);
    const session = body.session_id as string | undefined;
    const mark = history.mark({ account: robot.account, session, mayRepeat: false });
    this.post(robot, mark, { ...body, seed: mark, robot_state: history.stateOf(mark, robot) });
  }

  abandon(): void {
    const open = owed(this.sent);
    if (open.length === 0) return;
    const sent = this.history.pick(open);
    sent.excused = true;
    this.history.note(`#${sent.index} client leaves`);
    sent.client.abort();
  }

  /** The process was killed. */
  excuse(): void {
    for (const sent of owed(this.sent)) sent.excused = true;
  }

  private post(robot: Robot, mark: number, body: Record<string, unknown>): void {
    const facts = { index: this.sent.length, robot, body, account: robot.account, mark };
    const sent: RobotSent = { ...facts, client: new AbortController(), replies: [], excused: false };
    this.sent.push(sent);
    const { session_id, observation_id, expected_step, stream } = body;
    this.history.note(
      `#${sent.index} send mark ${mark} ${JSON.stringify({ session_id, observation_id, expected_step, stream })}`,
    );
    const init = { method: "POST", body: JSON.stringify(body), signal: sent.client.signal };
    const answered = this.history.world.send("/v1/chat/completions", robot.account, init).then(
      async (response) => {
        const text = await response.text();
        this.reply(sent, {
          status: response.status,
          text,
          generationId: response.headers.get("x-generation-id"),
          step: response.headers.get("x-session-step"),
          replayed: response.headers.get("idempotent-replayed") === "true",
        });
      },
      (error) => this.history.note(`#${sent.index} broke: ${(error as Error).message}`),
    );
    inBackground(answered);
  }

  private reply(sent: RobotSent, reply: Reply): void {
    const { code, step } = checkReply(this.sent, sent, reply);
    this.history.note(`#${sent.index} ← ${code ?? `step ${step}`}${reply.replayed ? ", replayed" : ""}`);
    sent.replies.push(reply);
    const { robot } = sent;
    if (code === "session_expired") this.history.renew(robot, sent.body.session_id);
    else if (sent.body.session_id !== robot.sessionId || robot.sessionId === undefined) return;
    else if (code === undefined && step !== undefined && !reply.replayed) robot.step = step + 1;
  }
}
