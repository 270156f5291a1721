/**
 * Messages of WebSockets that have begun and not ended. Bun assembles a message before it tells us of it, so what has arrived of one is
 * the difference between what the kernel has received for the connection and what the messages so far account for. Each has a deadline,
 * and all together a bound: the connection that has waited longest is ended first.
 */
import type { Meter } from "../../http/connections.ts";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";

/** Mask and shortest head of a frame from a client (RFC 6455 section 5.2). */
const FRAME_BYTES = 6;
const HEAD_BYTES_MAX = 14;
/** The longest control frame. */
const CONTROL_BYTES_MAX = FRAME_BYTES + 125;
/** Bytes that TLS adds to a record. */
const RECORD_BYTES = 40;
/** The share of a message, and the bytes, that are taken to be heads of fragments and records, which nothing else accounts for. */
const UNKNOWN_SHARE = 1 / 32;
const UNKNOWN_BYTES_MAX = 16_384;
/** The same for control frames without a message in between. */
const CONTROL_UNKNOWN_BYTES_MAX = 8_192;
/** Bytes of the handshake that Bun does not report: blanks, and those that turn out to be none of the first message. */
const HANDSHAKE_BLANKS = 8;
const HANDSHAKE_UNKNOWN_BYTES = 4_096;

export class HalfMessages {
  /** Meters by the peer's name. */
  readonly meters = new Map<string, HalfMessage>();

  constructor(
    private readonly clock: Clock,
    private readonly messageMs: number = LIMITS.socketMessageMs,
    private readonly bytesMax: number = LIMITS.halfMessageBytesMax,
  ) {}

  /** Called some times a second. */
  check(): void {
    const now = this.clock.monotonicMs();
    for (const half of this.meters.values()) half.settle(now);
    const halves = [...this.meters.values()].filter(({ sinceMs }) => sinceMs !== undefined);
    let bytes = halves.reduce((sum, half) => sum + half.bytes, 0);
    for (const half of halves.sort((one, other) => (one.sinceMs ?? now) - (other.sinceMs ?? now))) {
      const late = now - (half.sinceMs ?? now) > this.messageMs;
      if (!late && bytes <= this.bytesMax) break;
      bytes -= half.bytes;
      // Its close may take a moment: until then it is not ended again.
      half.sinceMs = undefined;
      half.end(late);
    }
  }
}

/** What has arrived of the next message of one socket. */
export class HalfMessage implements Meter {
  /** Monotonic ms when it began; undefined: no message has begun, as far as is known. */
  sinceMs: number | undefined;
  bytes = 0;
  /** Bytes of the handshake, of messages, and of what is taken to be heads. */
  private known: number;
  private before = 0;
  private messageBytes = 0;
  private messages = 0;
  private controls = 0;
  private controlUnknown = 0;
  private handshakeUnknown = 0;

  /** `headBytes`: size of the handshake as far as it is known. `end` ends a connection that is late, or that passes the bound of all. */
  constructor(
    private readonly headBytes: number,
    private readonly isSecure: boolean,
    readonly end: (late: boolean) => void,
  ) {
    this.known = headBytes;
  }

  /** A whole message has arrived. */
  message(bytes: number): void {
    const length = bytes > 65_535 ? 8 : bytes > 125 ? 2 : 0;
    this.known += FRAME_BYTES + length + bytes;
    this.messageBytes += bytes;
    this.messages += 1;
  }

  /** A ping or a pong has arrived. */
  control(): void {
    this.known += FRAME_BYTES;
    this.controls += 1;
  }

  /** A message may have ended after its last bytes were measured: then nothing new comes, and it is over all the same. */
  settle(nowMs: number): void {
    if (this.sinceMs !== undefined && this.messages + this.controls > 0) this.changed(this.before, nowMs, 0);
  }

  changed(received: number, nowMs: number, earlierBytes: number): void {
    const record = this.isSecure ? RECORD_BYTES : 0;
    if (this.before === 0) this.shake(received, earlierBytes);
    // No more is known than has arrived: what was taken to be heads may be the begin of a message that has ended.
    this.known = Math.min(this.known, received);
    if (this.messages > 0) {
      this.controlUnknown = 0;
      // A message has ended: what was left of the handshake belonged to it.
      this.known = Math.min(received, this.known + this.handshakeUnknown);
      this.handshakeUnknown = 0;
      const heads = this.messageBytes * UNKNOWN_SHARE + this.messages * (HEAD_BYTES_MAX + 2 * record);
      if (received - this.known <= Math.min(heads, UNKNOWN_BYTES_MAX)) this.known = received;
    } else if (this.controls > 0 && received - this.before <= this.controls * (CONTROL_BYTES_MAX + record)) {
      // The payload of a ping, and its record. A message may not hide in it for long.
      const share = Math.min(received - this.known - this.bytes, CONTROL_UNKNOWN_BYTES_MAX - this.controlUnknown);
      if (share > 0) {
        this.controlUnknown += share;
        this.known += share;
      }
    }
    this.bytes = received - this.known;
    if (this.bytes === 0) this.sinceMs = undefined;
    else if (this.sinceMs === undefined || this.messages > 0) this.sinceMs = nowMs;
    this.before = received;
    this.messageBytes = 0;
    this.messages = 0;
    this.controls = 0;
  }

  /** The first measure: what of it is the handshake, and what came on the connection before that. */
  private shake(received: number, earlierBytes: number): void {
    const sure = this.isSecure ? HANDSHAKE_UNKNOWN_BYTES : HANDSHAKE_BLANKS;
    const over = Math.max(0, received - this.known);
    const absorbed = Math.min(over, sure + Math.max(0, earlierBytes - this.headBytes));
    this.known += absorbed;
    this.handshakeUnknown = Math.min(over - absorbed, HANDSHAKE_UNKNOWN_BYTES);
  }
}
