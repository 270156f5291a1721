/** A TCP proxy on this machine whose connections a test breaks on purpose. */
import { connect, createServer, type Server, type Socket } from "node:net";

export abstract class BrokenProxy implements AsyncDisposable {
  protected readonly sockets = new Set<Socket>();
  /** Whether nothing passes. */
  protected isCut = false;
  private readonly server: Server = createServer((client) => this.accept(client));

  constructor(
    protected upstreamPort: number,
    private readonly upstreamHost = "127.0.0.1",
  ) {}

  /** Handles what each side of a new connection sends. */
  protected abstract wire(client: Socket, upstream: Socket): void;

  get port(): number {
    const address = this.server.address();
    return typeof address === "object" && address ? address.port : 0;
  }

  protected async listen(): Promise<this> {
    const listening = Promise.withResolvers<void>();
    this.server.listen(0, "127.0.0.1", listening.resolve);
    await listening.promise;
    return this;
  }

  /** Ends every connection, and refuses new ones until `mend`. */
  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.isCut = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    const closed = Promise.withResolvers<void>();
    this.server.close(() => closed.resolve());
    await closed.promise;
  }

  private accept(client: Socket): void {
    if (this.isCut) {
      client.destroy();
      return;
    }
    const upstream = connect(this.upstreamPort, this.upstreamHost);
    this.endWith(client, upstream);
    this.endWith(upstream, client);
    this.wire(client, upstream);
  }

  private endWith(socket: Socket, peer: Socket): void {
    this.sockets.add(socket);
    socket.on("error", () => peer.destroy());
    socket.on("close", () => {
      this.sockets.delete(socket);
      peer.destroy();
    });
  }
}
