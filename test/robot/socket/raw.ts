/** A WebSocket client that may break every rule of RFC 6455: frames are built by hand. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export const OPCODE = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

interface FrameOptions {
  readonly opcode: number;
  readonly final?: boolean;
  readonly masked?: boolean;
  /** The three reserved bits. */
  readonly reserved?: number;
  /** What the header says, where that is not the payload's length. */
  readonly length?: bigint;
}

export function frame(payload: Uint8Array | string, options: FrameOptions): Buffer {
  const { opcode, final = true, masked = true, reserved = 0 } = options;
  const bytes = Buffer.from(payload);
  const length = options.length ?? BigInt(bytes.length);
  const head = Buffer.alloc(length < 126n ? 2 : length < 65_536n ? 4 : 10);
  head[0] = (final ? 0x80 : 0) | (reserved << 4) | opcode;
  if (length < 126n) head[1] = Number(length);
  else if (length < 65_536n) {
    head[1] = 126;
    head.writeUInt16BE(Number(length), 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(length, 2);
  }
  if (!masked) return Buffer.concat([head, bytes]);
  head[1] = (head[1] ?? 0) | 0x80;
  const mask = Buffer.from([1, 2, 3, 4]);
  return Buffer.concat([head, mask, bytes.map((byte, index) => byte ^ (mask[index % 4] ?? 0))]);
}

export interface Received {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** A connection after its handshake. */
export class RawSocket {
  private buffer = Buffer.alloc(0);
  private readonly frames: Received[] = [];
  private wake = () => {};
  private ended = false;

  private constructor(
    readonly socket: Socket,
    readonly head: string,
  ) {
    socket.on("data", (bytes: Buffer) => {
      this.buffer = Buffer.concat([this.buffer, bytes]);
      this.parse();
      this.wake();
    });
    const end = () => {
      this.ended = true;
      this.wake();
    };
    socket.on("error", end);
    socket.on("close", end);
    socket.on("end", end);
  }

  /** `headers`: beside those of a right handshake. The connection's `head` is that of the server's answer. */
  static async open({ url, at }: { url: string; at: { key: string } }, headers = ""): Promise<RawSocket> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    await once(socket, "connect");
    const { promise, resolve } = Promise.withResolvers<string>();
    let text = Buffer.alloc(0);
    const read = (bytes: Buffer) => {
      text = Buffer.concat([text, bytes]);
      const end = text.indexOf("\r\n\r\n");
      if (end === -1) return;
      socket.off("data", read);
      if (text.length > end + 4) socket.unshift(text.subarray(end + 4));
      resolve(text.toString("latin1", 0, end));
    };
    socket.on("data", read);
    socket.write(
      `GET /v1/responses HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${at.key}\r\nConnection: Upgrade\r\n` +
        `Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`,
    );
    return new RawSocket(socket, await promise);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  text(message: object): void {
    this.socket.write(frame(JSON.stringify(message), { opcode: OPCODE.text }));
  }

  /** The next frame; undefined when the connection has ended. */
  async next(): Promise<Received | undefined> {
    while (this.frames.length === 0 && !this.ended) {
      await new Promise<void>((done) => {
        this.wake = done;
      });
    }
    return this.frames.shift();
  }

  /** The next text message as JSON, pongs passed over. */
  async message(): Promise<Record<string, unknown> | undefined> {
    for (;;) {
      const got = await this.next();
      if (got === undefined) return undefined;
      if (got.opcode === OPCODE.text) return JSON.parse(got.payload.toString());
      if (got.opcode === OPCODE.close) return { closed: got.payload.length >= 2 ? got.payload.readUInt16BE(0) : 1005 };
    }
  }

  /** Until the connection has ended: the close code, or undefined without one. */
  async closed(): Promise<number | undefined> {
    for (let got = await this.next(); got; got = await this.next()) {
      if (got.opcode === OPCODE.close) return got.payload.length >= 2 ? got.payload.readUInt16BE(0) : 1005;
    }
    return undefined;
  }

  private parse(): void {
    for (;;) {
      if (this.buffer.length < 2) return;
      const short = (this.buffer[1] ?? 0) & 0x7f;
      const head = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (this.buffer.length < head) return;
      const length =
        short < 126 ? short : short === 126 ? this.buffer.readUInt16BE(2) : Number(this.buffer.readBigUInt64BE(2));
      if (this.buffer.length < head + length) return;
      this.frames.push({
        opcode: (this.buffer[0] ?? 0) & 0x0f,
        payload: this.buffer.subarray(head, head + length),
      });
      this.buffer = this.buffer.subarray(head + length);
    }
  }
}
