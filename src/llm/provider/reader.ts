/** A provider's answer as it arrives: from bytes to events or one JSON value, and from these to a draft, by the provider's protocol. */
import { createParser } from "eventsource-parser";
import { LIMITS } from "../../limits.ts";
import { parsed } from "../json.ts";
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
  /** One event of a stream, JSON of any form. */
  event(value: unknown): Fault | undefined;
  /** An answer without a stream. */
  whole(value: unknown): Fault | undefined;
  /** Called after the last event. A fault: only a part of an answer has come. */
  ending(): Ending | Fault;
}

export class Reader implements Intake {
  private fault: Fault | undefined;
  private readonly decoder = new TextDecoder("utf-8", { fatal: true });
  /** Text of an answer without a stream. */
  private text: string[] | undefined;
  private length = 0;
  private done = false;
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
    const text = this.decoded(piece);
    if (text === undefined) return new Fault("invalid", "the answer is not UTF-8");
    this.length += text.length;
    if (this.text) {
      if (this.length > LIMITS.llmLineCharsMax) return new Fault("invalid", "the answer is too long");
      this.text.push(text);
      return undefined;
    }
    if (this.length > LIMITS.llmStreamCharsMax) return new Fault("invalid", "the stream is too long");
    // The parser may not be fed after a fault.
    if (!this.fault) this.parser.feed(text);
    this.fault ??= this.moved();
    return this.fault;
  }

  /** Called after the last byte. */
  ending(): Ending | Fault {
    if (this.decoded(undefined) === undefined) return new Fault("invalid", "the answer ends inside a character");
    if (this.text) {
      const value = parsed(this.text.join(""));
      if (value === undefined) return new Fault("invalid", "the answer is not JSON");
      const fault = this.dialect.whole(value) ?? this.moved();
      if (fault) return fault;
    }
    return this.fault ?? this.tooLong() ?? this.dialect.ending();
  }

  private take(data: string): void {
    if (this.fault || this.done) return;
    if (data === "[DONE]") {
      this.done = true;
      return;
    }
    const value = parsed(data);
    this.fault = value === undefined ? new Fault("invalid", "an event is not JSON") : this.dialect.event(value);
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
