/**
 * The bounds of open connections, in all and of one network. Bun accepts every connection, so one too many is ended as soon as it is
 * seen: the youngest one of the network that has most. Older ones stay, and no network keeps all others out. A connection that sends no
 * request is ended by Bun itself after some seconds, however slowly it sends the headers (`connectionIdleSeconds`).
 */
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { type Networks, networkOf, plainAddress } from "../std/networks.ts";
import type { ConnectionId, ConnectionWatch } from "./connection-watch.ts";

/** Learns what a connection has received. */
export interface Meter {
  /** `earlierBytes`: what came on the connection before anybody measured it. */
  changed(receivedBytes: number, nowMs: number, earlierBytes: number): void;
}

interface Connection extends ConnectionId {
  readonly peer: string;
  readonly network: string;
  earlierBytes: number;
}

/** The two ends of a connection differ in the peer's address and port. */
export function peerName(address: string, port: number): string {
  const plain = plainAddress(address);
  return `${plain.includes(":") ? new URL(`http://[${plain}]`).hostname : plain}|${port}`;
}

export class Connections {
  private readonly open = new Map<string, Connection>();
  private readonly byNetwork = new Map<string, Set<Connection>>();
  /** Connections that are being ended. */
  private readonly ending = new Set<Connection>();
  private ended = 0;

  constructor(
    private readonly deps: { clock: Clock; log: Log; proxies: Networks },
    private readonly watch: Pick<ConnectionWatch, "read" | "received" | "end">,
    /** The bound of one network too; a trusted proxy brings many clients and has no such bound. */
    private readonly bounds: { readonly max: number; readonly networkMax: number },
    /** Meters by the peer's name. */
    private readonly meters: ReadonlyMap<string, Meter>,
  ) {}

  get size(): number {
    return this.open.size;
  }

  /** Called some times a second. */
  look(): void {
    const nowMs = this.deps.clock.monotonicMs();
    for (const note of this.watch.read()) {
      const name = `${note.cookieHigh}.${note.cookieLow}`;
      const known = this.open.get(name);
      if (note.gone) {
        if (known) this.forget(name, known);
        continue;
      }
      const connection = known ?? this.met(name, note);
      const meter = this.meters.get(connection.peer);
      if (meter === undefined) connection.earlierBytes = note.received;
      const received = meter && this.watch.received(connection);
      if (received !== undefined) meter?.changed(received, nowMs, connection.earlierBytes);
    }
    if (this.ended > 0)
      this.deps.log.info("connections ended", { connections: this.ended, reason: "too many are open" });
    this.ended = 0;
  }

  private met(name: string, note: ConnectionId & { address: string; port: number }): Connection {
    const { fd, cookieLow, cookieHigh, address, port } = note;
    const peer = peerName(address, port);
    const connection = { fd, cookieLow, cookieHigh, peer, network: networkOf(address), earlierBytes: 0 };
    this.open.set(name, connection);
    const own = this.byNetwork.get(connection.network) ?? new Set();
    this.byNetwork.set(connection.network, own.add(connection));
    const tooMany = own.size > this.bounds.networkMax && !this.deps.proxies.has(address);
    if (tooMany) this.end(connection);
    else if (this.open.size - this.ending.size > this.bounds.max) this.end(this.youngestOfTheLargest() ?? connection);
    return connection;
  }

  /** It is open until the kernel has taken it down, which the next look sees. */
  private end(connection: Connection): void {
    this.ending.add(connection);
    this.watch.end(connection);
    this.ended += 1;
  }

  /** Networks that hold all connections must not keep every newcomer out: the one with the most gives one back. */
  private youngestOfTheLargest(): Connection | undefined {
    let largest: ReadonlySet<Connection> | undefined;
    for (const own of this.byNetwork.values()) if (own.size > (largest?.size ?? 0)) largest = own;
    return [...(largest ?? [])].findLast((one) => !this.ending.has(one));
  }

  private forget(name: string, connection: Connection): void {
    this.open.delete(name);
    this.ending.delete(connection);
    const own = this.byNetwork.get(connection.network);
    own?.delete(connection);
    if (own?.size === 0) this.byNetwork.delete(connection.network);
  }
}
