/** A provider's answer as it arrives: from bytes to events or one JSON value, and from these to a draft, by the provider's protocol. */
import { createParser } from "eventsource-parser";
import { LIMITS } from "../../limits.ts";
import { parseJson } from "../../std/json.ts";
import { objectOf } from "../json.ts";
import type { Draft } from "../output/draft.ts";
import type { IncompleteReason } from "../output/object.ts";
import type { LlmUsage } from "../usage.ts";
import type { Intake } from "./client.ts";
import { Fault } from "./fault.ts";

/** The end of a whole answer. */
export interface Ending {
  readonly incomplete: IncompleteReason | undefined;
  /** undefined: the provider sent no usage, or none in numbers. */
  readonly usage: LlmUsage | undefined;
}

/** A protocol's reading of an answer. */
export interface Dialect {
  /** One event of a stream, JSON of any form. `end`: it was the last one. */
  event(value: unknown): Fault | "end" | undefined;
  /** An answer without a stream. */
  whole(value: unknown): Fault | undefined;
  /** Called after the last event. A fault: only a part of an answer has come. */
  ending(): Ending | Fault;
}

export class Reader implements Intake {
  ended = false;
  private fault: Fault | undefined;
  private readonly decoder = new TextDecoder("utf-8", { fatal: true });
  /** Text of an answer without a stream. */
  private text: string[] | undefined;
  private length = 0;
  private readonly parser = createParser({
    maxBufferSize: LIMITS.llmLineCharsMax,
    onEvent: ({ data }) => this.take(data),
    onError: ({ type }) => {
      if (type === "max-buffer-size-exceeded") this.fault ??= new Fault("invalid", "an event is too long");
    },
  });

  constructor(
    private readonly dialect: Dialect,
    private readonly draft: Draft,
    /** Called after each piece of bytes, so that its events can be sent to the client. */
    private readonly moved: () => Fault | undefined,
  ) {}

  begin(contentType: string): Fault | undefined {
    if (/^text\/event-stream\b/i.test(contentType)) return undefined;
    if (!/^application\/json\b/i.test(contentType))
      return new Fault("invalid", "the answer is neither JSON nor a stream");
    this.text = [];
    return undefined;
  }

  bytes(piece: Uint8Array): Fault | undefined {
    // Lines are decoded one by one, so that bytes behind the end do not spoil the line that says it.
    for (const line of linesOf(piece)) {
      if (!this.fault && !this.ended) this.line(line);
    }
    if (!this.text) this.fault ??= this.moved();
    return this.fault;
  }

  private line(bytes: Uint8Array): void {
    const text = this.decoded(bytes);
    this.length += text?.length ?? 0;
    if (text === undefined) this.fault = new Fault("invalid", "the answer is not UTF-8");
    else if (this.length > (this.text ? LIMITS.llmLineCharsMax : LIMITS.llmStreamCharsMax))
      this.fault = new Fault("invalid", "the answer is too long");
    else if (this.text) this.text.push(text);
    else this.parser.feed(text);
  }

  /** Whether the end of the answer was said, so that it is whole however its connection ends. */
  get whole(): boolean {
    return this.ended || objectOf(parseJson(this.text?.join("") ?? "")) !== undefined;
  }

  /** Called after the last byte. */
  ending(): Ending | Fault {
    if (!this.ended && this.decoded(undefined) === undefined)
      return new Fault("invalid", "the answer ends inside a character");
    if (this.text) {
      const value = parseJson(this.text.join(""));
      if (value === undefined) return new Fault("invalid", "the answer is not JSON");
      const fault = this.dialect.whole(value) ?? this.moved();
      if (fault) return fault;
    }
    return this.fault ?? this.tooLong() ?? this.dialect.ending();
  }

  private take(data: string): void {
    if (this.fault || this.ended) return;
    if (data === "[DONE]") {
      this.ended = true;
      return;
    }
    const value = parseJson(data);
    const said = value === undefined ? new Fault("invalid", "an event is not JSON") : this.dialect.event(value);
    if (said === "end") this.ended = true;
    else this.fault = said;
    this.fault ??= this.tooLong();
  }

  private tooLong(): Fault | undefined {
    return this.draft.full ? new Fault("invalid", "the output is too long") : undefined;
  }

  private decoded(piece: Uint8Array | undefined): string | undefined {
    try {
      return piece ? this.decoder.decode(piece, { stream: true }) : this.decoder.decode();
    } catch {
      return undefined;
    }
  }
}

/** Lines with their ends. No character of UTF-8 has the byte of a line's end inside. */
function* linesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let from = 0, to = 1; from < bytes.length; to += 1) {
    if (to < bytes.length && bytes[to - 1] !== 10 && bytes[to - 1] !== 13) continue;
    yield bytes.subarray(from, to);
    from = to;
  }
}
