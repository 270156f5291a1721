/** A proxy before a server that loses an answer on purpose: the server has done what was asked, nobody is told. */
import type { Socket } from "node:net";
import { BrokenProxy } from "../broken-proxy.ts";

/** What is to be lost. */
interface Trap {
  /** Bytes of the client that spring it. */
  readonly asked: string;
  /** Bytes of the server that show that it is done; they and all before them are swallowed. */
  readonly done: string;
  /** Whether nothing passes afterwards. */
  readonly stay: boolean;
  readonly sprung: () => void;
}

export class CutProxy extends BrokenProxy {
  private trap: Trap | undefined;
  private readonly stops = new Map<string, () => void>();
  /** Sockets that pass nothing on, with what they would. */
  private readonly stopped = new Map<Socket, Buffer[]>();
  private readonly sent: string[] = [];
  private renamed: readonly [string, string] | undefined;

  static async before(upstreamPort: number): Promise<CutProxy> {
    return await new CutProxy(upstreamPort).listen();
  }

  /** The address with which a client reaches the server of `url` over this proxy. */
  through(url: string): string {
    const address = new URL(url);
    address.port = String(this.port);
    return address.href;
  }

  /** Loses the answer to the next statement with `asked` in it, once `done` stands in that answer, and cuts its connection. */
  lose(asked: string, done: string, { stay } = { stay: false }): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.trap = { asked, done, stay, sprung: resolve };
    return promise;
  }

  /**
   * Holds the answers on one connection until `resume`: the one that sends the next statement with `asked` in it. Others go on.
   * Resolves when the server was asked.
   */
  stop(asked: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.stops.set(asked, resolve);
    return promise;
  }

  resume(): void {
    for (const [client, bytes] of this.stopped) client.write(Buffer.concat(bytes));
    this.stopped.clear();
  }

  /** Changes a setting's name in what begins a connection, as a pooler does that passes none on. As long as the first. */
  rename(setting: string, other: string): void {
    this.renamed = [setting, other];
  }

  /** How often something with `asked` in it was sent. */
  times(asked: string): number {
    return this.sent.filter((text) => text.includes(asked)).length;
  }

  /** Passes nothing on any more, and says nothing about it, as a network that lost a machine. */
  silence(): void {
    for (const socket of this.sockets) socket.pause();
  }

  /** Ends every connection; the next ones lead to another server, as an address that a failover moves. */
  lead(upstreamPort: number): void {
    this.upstreamPort = upstreamPort;
    for (const socket of this.sockets) socket.destroy();
  }

  protected wire(client: Socket, upstream: Socket): void {
    let caught: Trap | undefined;
    let swallowed = "";
    let begins = true;
    client.on("data", (bytes) => {
      if (caught === undefined && this.trap && bytes.includes(this.trap.asked)) {
        caught = this.trap;
        this.trap = undefined;
      }
      const text = bytes.toString("latin1");
      this.sent.push(text);
      for (const [asked, sprung] of this.stops) {
        if (!text.includes(asked)) continue;
        this.stops.delete(asked);
        this.stopped.set(client, []);
        sprung();
      }
      upstream.write(this.renamed && begins ? Buffer.from(text.replace(...this.renamed), "latin1") : bytes);
      begins = false;
    });
    upstream.on("data", (bytes) => {
      const held = this.stopped.get(client);
      if (held) {
        held.push(Buffer.from(bytes));
        return;
      }
      if (caught === undefined) {
        client.write(bytes);
        return;
      }
      swallowed += bytes.toString("latin1");
      if (!swallowed.includes(caught.done)) return;
      if (caught.stay) this.cut();
      client.destroy();
      upstream.destroy();
      caught.sprung();
    });
  }
}
