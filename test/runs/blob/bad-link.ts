/** A way to a server that changes or cuts what passes: a proxy of bytes on loopback. */
import { connect, createServer, type Socket } from "node:net";

/** What happens to a block; `cut`: it is lost, and the connection ends. `before`: bytes of the connection that passed in this direction. */
type Passing = (block: Buffer, before: number) => Buffer | "cut";

export interface BadLink extends AsyncDisposable {
  readonly endpoint: string;
  /** Connections so far. */
  count(): number;
}

/** `passing` is asked once for each connection. */
export async function badLink(
  port: number,
  passing: () => { readonly toServer?: Passing; readonly toClient?: Passing },
): Promise<BadLink> {
  let connections = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    connections += 1;
    const { toServer, toClient } = passing();
    const upstream = connect(port, "127.0.0.1");
    carry(client, upstream, toServer);
    carry(upstream, client, toClient);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    endpoint: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    count: () => connections,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function carry(from: Socket, to: Socket, passing: Passing = (block) => block): void {
  let passed = 0;
  from.on("data", (block: Buffer) => {
    const out = passing(block, passed);
    passed += block.length;
    if (out === "cut") {
      from.destroy();
      to.destroy();
    } else if (!to.write(out)) {
      from.pause();
      to.once("drain", () => from.resume());
    }
  });
  from.on("end", () => to.end());
  from.on("error", () => to.destroy());
  from.on("close", () => to.end());
}
