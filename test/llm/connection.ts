/** The provider's end of one connection: writes as they are told, and the word of the caller's leaving. */
import type { Socket } from "node:net";
import { RequestReader } from "./http-request.ts";

export class Connection {
  readonly requests = new RequestReader();
  /** The caller ended its side (a FIN counts: no client of HTTP half-closes and waits), or the connection is gone. */
  readonly gone: Promise<void>;
  isGone = false;

  constructor(private readonly socket: Socket) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.gone = promise;
    const leave = () => {
      this.isGone = true;
      this.requests.end();
      resolve();
    };
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => this.requests.push(bytes));
    socket.on("end", leave);
    socket.on("close", leave);
    // A reset is a way to leave; an unheard error event would end the process.
    socket.on("error", leave);
  }

  /** Ends when the bytes are on their way and the socket takes more; nothing is sent to a caller who has left. */
  async write(bytes: string | Uint8Array): Promise<void> {
    if (this.isGone || this.socket.write(bytes)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.socket.once("drain", resolve);
    await Promise.race([promise, this.gone]);
  }

  async pause(ms: number): Promise<void> {
    if (ms > 0 && !this.isGone) await Promise.race([Bun.sleep(ms), this.gone]);
  }

  /** FIN after all that was written. The caller's FIN is not waited for. */
  end(): void {
    this.socket.end();
  }

  /** RST: what the caller has not read yet may be lost to it. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  destroy(): void {
    this.socket.destroy();
  }
}
