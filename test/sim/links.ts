/** What robots of a history do on sockets: message by message, pipelined, cut anywhere, resumed, repeated. */
import { assert } from "../../src/std/assert.ts";
import type { History, Robot } from "./history.ts";
import { type Content, Link, type Outgoing } from "./link.ts";

/** Connections at a time. */
const LINKS_MAX = 6;
/** Observations of a connection that may wait for their answers (specification). */
const OUTSTANDING_MAX = 8;
/** One more than messages that may wait to be worked on (specification). */
const MESSAGES_TOO_MANY = 129;

export class Links {
  readonly all: Link[] = [];
  /** All observations, by account, model and session. */
  private readonly contents = new Map<string, Content[]>();

  constructor(private readonly history: History) {}

  /** Somebody is owed an answer. */
  get waits(): boolean {
    return this.all.some(({ state, unanswered }) => state === "alive" && unanswered.length > 0);
  }

  get said(): Content[] {
    return [...this.contents.values()].flat().filter(({ said }) => said.length > 0);
  }

  async act(): Promise<void> {
    const { history } = this;
    const there = this.all.filter(({ isThere }) => isThere);
    const choice = history.below(100);
    if (there.length === 0 || (choice < 14 && there.length < LINKS_MAX)) {
      const robot = history.pick(history.robots);
      const format = history.below(2) === 0 ? "json" : "f32";
      this.connect(robot, history.below(10) === 0 ? undefined : robot.sessionId, format);
      return;
    }
    const link = history.pick(there);
    if (choice < 20) return this.cut(link);
    if (choice < 24 && link.named !== undefined) return await this.flap(link, link.named);
    if (choice < 25) {
      const how = history.pick(["waits", "dropped"] as const);
      history.note(`L${link.index} does not read: what is sent is ${how}`);
      return link.stall(how);
    }
    if (link.outgoing.length === 0) this.compose(link);
    if (link.outgoing.length === 0) return;
    // Message by message, or many at a time.
    const count = history.below(3) === 0 ? 1 + history.below(link.outgoing.length) : link.outgoing.length;
    for (let message = 0; message < count; message += 1) this.say(link);
  }

  connect(robot: Robot, named: string | undefined, format: "json" | "f32"): Link {
    const { history } = this;
    const link = new Link(history, this.all.length, robot, named, format);
    this.all.push(link);
    link.outgoing.push(this.opening(link));
    history.note(`L${link.index} connects for ${robot.account} ${history.manifest(robot).id} ${named} ${format}`);
    return link;
  }

  cut(link: Link): void {
    this.history.note(`L${link.index} is cut with ${link.outgoing.length} messages to say`);
    link.cut();
  }

  /** A bad line: the robot comes back as often as it is cut, and finds its session as free as it left it. */
  private async flap(link: Link, named: string): Promise<void> {
    const { history } = this;
    if (history.below(2) === 0) history.slow();
    let last = link;
    for (let times = 1 + history.below(3); times > 0; times -= 1) {
      this.cut(last);
      last = this.connect(link.robot, named, link.format);
      this.say(last);
      await history.settle();
    }
  }

  /** The next message of those that are composed. */
  say(link: Link): void {
    const outgoing = link.outgoing.shift();
    if (!outgoing) return;
    const { data } = outgoing;
    this.contend();
    if (typeof data === "string") this.history.note(`L${link.index} says ${brief(data)}`);
    link.say(outgoing);
  }

  hear(): void {
    this.contend();
    for (const link of this.all) link.hear();
    this.contend();
  }

  /** The process was killed. */
  lose(): void {
    for (const link of this.all) if (link.isThere) link.state = "killed";
  }

  /** Ends what is still there; where the service has ended in order, nothing is. */
  async endAll(inOrder: boolean): Promise<void> {
    const { history } = this;
    const there = this.all.filter(({ isThere }) => isThere);
    assert(!inOrder || there.length === 0, "a service that ends closes every connection");
    for (const link of there) {
      if (link.done || history.below(2) === 0) continue;
      history.note(`L${link.index} says session.close at the end`);
      link.say({ data: JSON.stringify({ type: "session.close" }) });
    }
    await history.settle();
    for (const link of there) {
      const left = link.isThere;
      assert(!left || !link.done || link.next === undefined, `L${link.index}: session.close closes`);
      if (left) this.cut(link);
    }
  }

  /** One observation with its frames, as the next messages. */
  observation(link: Link, changes: { id?: string; perCamera?: number; bad?: boolean } = {}): Content {
    const { history } = this;
    const { cameras, frames } = history.manifest(link.robot);
    const perCamera = changes.perCamera ?? (link.belief === 0 ? frames.first : frames.later);
    const order = cameras.flatMap((_, camera) => Array<number>(perCamera).fill(camera));
    for (let last = order.length - 1; last > 0; last -= 1) {
      const other = history.below(last + 1);
      [order[last], order[other]] = [order[other] ?? 0, order[last] ?? 0];
    }
    const bad = changes.bad ? history.below(order.length) : -1;
    const { account } = link.robot;
    const mark = history.mark({ account, session: link.session, mayRepeat: false });
    // What is said before the session is open may meet errors that name nothing.
    const id = changes.id ?? (link.next === undefined || history.below(4) > 0 ? `s${mark}` : undefined);
    const expectedStep = history.below(2) > 0 ? link.belief : undefined;
    const content: Content = {
      mark,
      id,
      expectedStep,
      frames: order.map((camera, index) => frameOf(camera, history.pictures[index === bad ? "bad" : "good"])),
      text: JSON.stringify({
        type: "observation",
        observation_id: id,
        expected_step: expectedStep,
        ...(history.below(8) === 0 ? { deadline_ms: 1 + history.below(12_000) } : {}),
        robot_state: history.stateOf(mark, link.robot),
      }),
      said: [],
      answer: undefined,
    };
    this.of(link).push(content);
    link.belief += 1;
    this.queue(link, content);
    return content;
  }

  queue(link: Link, content: Content): void {
    for (const data of content.frames) link.outgoing.push({ data });
    link.outgoing.push({ data: content.text, content });
  }

  private compose(link: Link): void {
    const { history } = this;
    if (link.done) return;
    const choice = history.below(100);
    const named = this.of(link).filter(({ id }) => id !== undefined);
    if (choice < 4) {
      link.outgoing.push({ data: JSON.stringify({ type: "session.close" }) });
      link.done = true;
    } else if (choice < 6) link.outgoing.push(this.opening(link));
    else if (choice < 8) link.outgoing.push({ data: frameOf(9, history.pictures.good) });
    else if (choice < 10) link.outgoing.push({ data: "{" });
    else if (choice < 11) for (let n = 0; n <= OUTSTANDING_MAX; n += 1) this.observation(link, { perCamera: 0 });
    else if (choice < 12) {
      const frame = { data: frameOf(0, history.pictures.good) };
      link.outgoing.push(...Array.from({ length: MESSAGES_TOO_MANY }, () => frame));
    } else if (choice < 30 && named.length > 0) this.queue(link, history.pick(named));
    else if (choice < 42 && named.length > 0) this.observation(link, idOf(history.pick(named)));
    else {
      const { frames } = history.manifest(link.robot);
      do {
        const wrong = history.below(30) === 0 ? { perCamera: frames.later + 1 } : {};
        const waiting = link.unanswered.length + link.outgoing.filter(({ content }) => content).length;
        if (waiting < OUTSTANDING_MAX) this.observation(link, { ...wrong, bad: history.below(30) === 0 });
      } while (history.below(3) === 0);
    }
  }

  private opening({ named, robot, format }: Link): Outgoing {
    const { history } = this;
    const instruction = history.below(30) === 0 ? "another task" : "fold the towel";
    const model = history.manifest(robot).id;
    const rows = history.below(3) === 0 ? { action_horizon: 1 + history.below(4) } : {};
    const data = JSON.stringify({
      type: "session.open",
      model,
      instruction,
      session_id: named,
      actions_format: format,
      seed: this.all.length,
      ...rows,
    });
    return { data };
  }

  /** Notes who may have to share a session that it opens. */
  private contend(): void {
    const { all, history } = this;
    for (const link of all) {
      if (!link.isThere || link.next !== undefined || link.contended) continue;
      const same = ({ robot, session }: Link) => keyOf(robot, session) === keyOf(link.robot, link.session);
      // A request may have it for some time after its answer.
      const asked = history.requests.sent.some(
        ({ robot, body }) => keyOf(robot, String(body.session_id)) === keyOf(link.robot, link.session),
      );
      link.contended = asked || all.some((other) => other !== link && other.isThere && same(other));
    }
  }

  private of({ robot, session }: Link): Content[] {
    const key = keyOf(robot, session);
    const contents = this.contents.get(key) ?? [];
    this.contents.set(key, contents);
    return contents;
  }
}

function keyOf({ account, model }: Robot, session: string): string {
  return `${account} ${model} ${session}`;
}

function idOf({ id }: Content): { id?: string } {
  return id === undefined ? {} : { id };
}

function frameOf(camera: number, jpeg: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(camera), jpeg]);
}

/** What of a message tells it from others. */
function brief(data: string): string {
  return data.replace(/"robot_state":.*/, "…").slice(0, 160);
}
