/** What clients of language models ask in a history, and what they are told. */
import { present } from "../../src/std/assert.ts";
import { eventsOf } from "../llm/stage.ts";
import { inBackground } from "./gates.ts";
import type { LlmHistory } from "./llm-history.ts";
import { LLM_ACCOUNTS, type LlmNode } from "./llm-world.ts";
import { owed, type Sent } from "./trace.ts";

/** A request of a language model. */
export interface LlmSent extends Sent {
  readonly account: number;
  /** undefined: the service makes one. */
  readonly key: string | undefined;
  readonly job: boolean;
  /** The text of its body, by which its calls of the provider are known. */
  readonly mark: string;
  readonly body: string;
  readonly node: LlmNode;
  readonly replies: LlmReply[];
  leave: () => void;
}

export interface LlmReply {
  readonly status: number;
  readonly code: string | undefined;
  /** The id of the response, if the client got it. */
  readonly id: string | undefined;
  /** The response object that it ends with, as it was written. */
  readonly object: string | undefined;
  readonly replayed: boolean;
  /** Replies that came before. */
  readonly after: number;
}

interface Told {
  readonly id: string;
  readonly status: string;
}

export class LlmRequests {
  readonly sent: LlmSent[] = [];
  /** Ids that somebody was told, with their accounts. */
  readonly ids = new Map<string, number>();
  /** Those that were asked for with `store: false`. */
  readonly hidden = new Set<string>();
  private marks = 0;
  private replies = 0;

  constructor(private readonly history: LlmHistory) {}

  /** Somebody is owed a reply. */
  get waits(): boolean {
    return owed(this.sent).length > 0;
  }

  send(): void {
    const { history } = this;
    this.marks += 1;
    const account = history.below(LLM_ACCOUNTS.length);
    const key = history.below(6) === 0 ? undefined : `k${this.marks}`;
    this.post({
      account,
      key,
      job: history.below(2) === 0,
      mark: `mark ${this.marks}`,
      stream: history.below(2) === 0,
    });
  }

  /** The same request once more, to any node. */
  again(): void {
    const earlier = this.named();
    if (earlier) this.resend(earlier, earlier.mark, earlier.body);
  }

  /** A key with another body. */
  conflict(): void {
    const earlier = this.named();
    if (!earlier) return;
    this.marks += 1;
    const mark = `mark ${this.marks}`;
    this.resend(earlier, mark, earlier.body.replace(earlier.mark, mark));
  }

  abandon(): void {
    const open = owed(this.sent);
    if (open.length === 0) return;
    const sent = this.history.pick(open);
    sent.excused = true;
    this.history.note(`#${sent.index} client leaves`);
    sent.leave();
  }

  /** The process was killed. */
  excuse(node: LlmNode): void {
    for (const sent of owed(this.sent)) if (sent.node === node) sent.excused = true;
  }

  /** Looks at a response whose id a client got. */
  get(): void {
    const { history } = this;
    if (this.ids.size === 0) return;
    const [id, account] = history.pick([...this.ids]);
    const stranger = history.below(5) === 0;
    const answered = history.anyNode().send(`/v1/responses/${id}`, stranger ? 1 - account : account, {});
    inBackground(
      answered.then(async (response) => history.expectShown(id, stranger, response.status, await response.text())),
    );
  }

  private named(): LlmSent | undefined {
    const earlier = this.sent.filter(({ key }) => key !== undefined);
    return earlier.length === 0 ? undefined : this.history.pick(earlier);
  }

  private resend({ account, key, job }: LlmSent, mark: string, body: string): void {
    this.post({ account, key, job, mark, stream: body.includes('"stream":true'), body });
  }

  private post(request: {
    account: number;
    key: string | undefined;
    job: boolean;
    mark: string;
    stream: boolean;
    body?: string;
  }): void {
    const { history } = this;
    const { account, key, job, mark, stream } = request;
    const model = job ? "llm-a-5.3:async" : "llm-a-5.3:superfast";
    const more = !job && this.marks % 4 === 0 ? { store: false } : {};
    const body = request.body ?? JSON.stringify({ model, input: mark, stream, max_output_tokens: 100, ...more });
    const node = history.anyNode();
    const sent: LlmSent = {
      ...{ index: this.sent.length, account, key, job, mark, body, node, replies: [], excused: false },
      leave: () => {},
    };
    this.sent.push(sent);
    const where = history.world.nodes.indexOf(node);
    history.note(
      `#${sent.index} send ${key ?? "no key"}, ${mark}, ${job ? "job" : "live"}${stream ? " stream" : ""} to ${where}`,
    );
    const headers = { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) };
    const answered = node
      .send("/v1/responses", account, { method: "POST", body, headers })
      .then((response) => this.read(sent, response, stream));
    inBackground(answered);
  }

  private async read(sent: LlmSent, response: Response, stream: boolean): Promise<void> {
    const reader = present(response.body, "a body").getReader();
    sent.leave = () => inBackground(reader.cancel());
    if (sent.excused) return sent.leave();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
      const [, id] = /"id":"(resp_\w+)"/.exec(text) ?? [];
      if (id !== undefined) this.ids.set(id, sent.account);
      if (id !== undefined && sent.body.includes('"store":false')) this.hidden.add(id);
    }
    if (!sent.excused)
      this.reply(sent, response, this.told(response.status === 200 && stream ? endOf(text) : text, response));
  }

  private told(text: string, { status, headers }: Response): LlmReply {
    const body = JSON.parse(text) as Told & { error?: { code: string } | null; type?: string; code?: string };
    const failed = status !== 200 || body.type === "error";
    const ended = !failed && !/^(queued|in_progress)$/.test(body.status);
    return {
      status,
      code: failed ? (body.error?.code ?? "no code") : undefined,
      id: failed ? undefined : body.id,
      object: ended ? text : undefined,
      replayed: headers.get("idempotent-replayed") === "true",
      after: this.replies,
    };
  }

  private reply(sent: LlmSent, { headers }: Response, reply: LlmReply): void {
    const outcome = reply.code ?? (reply.object === undefined ? "accepted" : (JSON.parse(reply.object) as Told).status);
    const kind = sent.job ? "job" : "live";
    this.history.note(`#${sent.index} ← ${kind} ${outcome}${reply.replayed ? ", replayed" : ""}`);
    if ((headers.get("idempotency-key") ?? "") === "" && reply.code !== "auth_unavailable") {
      throw new Error(`#${sent.index} is answered without its key`);
    }
    sent.replies.push(reply);
    this.replies += 1;
  }
}

/** The response of a stream's last event, or its error event; the stream must be whole. */
function endOf(text: string): string {
  const { events, done } = eventsOf(text);
  const [first] = events;
  const last = present(events.at(-1), "an event");
  if (!events.every(({ sequence_number }, index) => sequence_number === index))
    throw new Error(`out of order: ${text}`);
  if (first?.type !== "response.created") throw new Error(`a stream begins with ${first?.type}`);
  const ends = events.filter(({ type }) => /^(error|response\.(completed|failed|incomplete))$/.test(type));
  if (ends.length !== 1 || ends[0] !== last) throw new Error(`a stream has ${ends.length} ends: ${text}`);
  if (done !== (last.type !== "error")) throw new Error(`a stream ends with ${last.type}, [DONE] ${done}`);
  return JSON.stringify(last.type === "error" ? last : last.response);
}
