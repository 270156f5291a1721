/** The TCP connections that this process has accepted on a port: what Bun does not tell. native/src/http/connections.rs watches them. */
import { ConnectionNote as Layout } from "../engine/abi.ts";
import { type Calls, type Handle, handleOf, lastError } from "../engine/binding.ts";
import { openLibrary } from "../engine/library.ts";
import { assert } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";

/** Names a connection, in this process and for as long as it lives. */
export interface ConnectionId {
  readonly fd: number;
  readonly cookieLow: number;
  readonly cookieHigh: number;
}

/** What is new of one connection. */
interface ConnectionNote extends ConnectionId {
  /** The peer's, in its own form; empty when it has gone. */
  readonly address: string;
  readonly port: number;
  readonly gone: boolean;
  /** Bytes received until then. */
  readonly received: number;
}

/** The listening sockets of a port, which hand its connections from one to the next. */
export interface Listeners {
  /** Lets another socket of this user listen on the port too, or no longer. */
  share(on: boolean): void;
  /** What the kernel keeps of a connection that is accepted from now on, until the event loop reads it. */
  receiveAtMost(bytes: number): void;
  /** New connections go to the socket that joined last; what waits at the others is still given. False where the kernel cannot. */
  preferLast(): boolean;
}

export async function listenersOf(port: number): Promise<Listeners | Problem> {
  const native = await openLibrary();
  if (native instanceof Problem) return native;
  return {
    share: (on) => {
      native.tendon_listener_share(port, on ? 1 : 0);
    },
    receiveAtMost: (bytes) => {
      native.tendon_listener_receive(port, bytes);
    },
    preferLast: () => native.tendon_listener_prefer_last(port) === 1,
  };
}

export async function watchConnections(port: number): Promise<ConnectionWatch | Problem> {
  const native = await openLibrary();
  if (native instanceof Problem) return native;
  const watch = handleOf((out) => native.tendon_watch_open(port, out));
  if (watch === undefined) return new Problem(`the connections cannot be watched: ${lastError(native)}`);
  return new ConnectionWatch(native, watch);
}

/** Notes taken with one call. */
const NOTES = 256;

/** The connections of one port. All calls belong to the event loop's thread. */
export class ConnectionWatch {
  private readonly buffer = new Uint8Array(NOTES * Layout.size);
  private readonly view = new DataView(this.buffer.buffer);
  private readonly bytes = new BigUint64Array(1);
  private open = true;

  constructor(
    private readonly native: Calls,
    private readonly watch: Handle,
  ) {}

  /** What is new since the last call. */
  read(): ConnectionNote[] {
    assert(this.open, "a watch that is closed is not read");
    const notes: ConnectionNote[] = [];
    for (;;) {
      const count = this.native.tendon_watch_read(this.watch, this.buffer, NOTES);
      for (let at = 0; at < count; at += 1) notes.push(this.note(at * Layout.size));
      if (count < NOTES) return notes;
    }
  }

  /** Bytes received up to now; undefined when it has gone. */
  received({ fd, cookieLow, cookieHigh }: ConnectionId): number | undefined {
    const known = this.native.tendon_connection_received(fd, cookieLow, cookieHigh, this.bytes) === 1;
    return known ? Number(this.bytes[0]) : undefined;
  }

  /** Ends it, as its peer could. */
  end({ fd, cookieLow, cookieHigh }: ConnectionId): void {
    this.native.tendon_connection_end(fd, cookieLow, cookieHigh);
  }

  close(): void {
    if (!this.open) return;
    this.open = false;
    this.native.tendon_watch_close(this.watch);
  }

  private note(from: number): ConnectionNote {
    const word = (offset: number) => this.view.getUint32(from + offset, true);
    const gone = word(Layout.gone) === 1;
    return {
      fd: word(Layout.fd),
      cookieLow: word(Layout.cookie),
      cookieHigh: word(Layout.cookie + 4),
      address: gone ? "" : addressText(this.buffer.subarray(from + Layout.address, from + Layout.address + 16)),
      port: word(Layout.port),
      gone,
      received: Number(this.view.getBigUint64(from + Layout.received, true)),
    };
  }
}

/** The address in 16 bytes of network order; an IPv4 address in its dotted form, one of IPv6 as eight groups. */
function addressText(bytes: Uint8Array): string {
  const mapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (mapped) return bytes.subarray(12).join(".");
  const groups = Array.from({ length: 8 }, (_, at) => ((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0));
  return groups.map((group) => group.toString(16)).join(":");
}
