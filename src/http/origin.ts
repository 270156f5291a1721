/** The client's address, and the one that the client used for this service. Forwarded headers are believed from trusted proxies only. */
import { isIP } from "node:net";
import type { Server } from "bun";
import { type Networks, networkOf, plainAddress } from "../std/networks.ts";

interface Reception {
  readonly request: Request;
  readonly server: Server<unknown> | null;
}

/** The other end of the connection. */
function peerOf({ request, server }: Reception): string | undefined {
  return server?.requestIP(request)?.address;
}

const UNKNOWN = "an unknown address";

/** Found when it is asked for: most requests never need it. */
export class Origin {
  /** `proxies`: those whose `X-Forwarded-For`, `-Proto` and `-Host` are believed. */
  constructor(
    private readonly arrival: Reception,
    private readonly proxies: Networks,
  ) {}

  /** The client's address, as people see it. */
  get address(): string {
    return clientOf(peerOf(this.arrival), this.arrival.request.headers.get("x-forwarded-for"), this.proxies);
  }

  /** What tries are counted by. */
  get network(): string {
    return networkOf(this.address);
  }

  /** The browser uses TLS, to this service or to the proxy in front. */
  get isSecure(): boolean {
    return (this.forwarded("x-forwarded-proto") ?? new URL(this.arrival.request.url).protocol) === "https:";
  }

  /** The address that the client used, without a slash at its end. */
  get base(): string {
    return `${this.isSecure ? "https" : "http"}://${this.host}`;
  }

  /** A page of another site sent this, by the headers that browsers set. */
  get isForeign(): boolean {
    const { headers } = this.arrival.request;
    const site = headers.get("sec-fetch-site");
    if (site !== null && site !== "same-origin" && site !== "none") return true;
    const origin = headers.get("origin");
    if (origin === null) return false;
    return !URL.canParse(origin) || new URL(origin).host !== this.host;
  }

  private get host(): string {
    const said = this.forwarded("x-forwarded-host");
    return said ?? new URL(this.arrival.request.url).host;
  }

  /** What the trusted proxy says, in the form that a URL has it. */
  private forwarded(name: "x-forwarded-proto" | "x-forwarded-host"): string | undefined {
    // The nearest of several proxies comes last.
    const said = this.arrival.request.headers.get(name)?.split(",").at(-1)?.trim().toLowerCase();
    if (!said) return undefined;
    const url = name === "x-forwarded-proto" ? `${said}://host` : `http://${said}`;
    if (!URL.canParse(url) || !this.isProxied) return undefined;
    const { protocol, host, pathname, username, search, hash } = new URL(url);
    if (name === "x-forwarded-proto") return protocol;
    const isHost = pathname === "/" && !said.endsWith("/") && username + search + hash === "";
    return isHost ? host : undefined;
  }

  private get isProxied(): boolean {
    // A request without a server came over no connection: this process asks itself.
    if (this.arrival.server === null) return true;
    const peer = peerOf(this.arrival);
    return peer !== undefined && this.proxies.has(peer);
  }
}

/**
 * The last address that a trusted proxy has vouched for: each proxy adds the one that it was reached from at the end, and what
 * stands before an address that is no proxy was written by the client.
 */
export function clientOf(peer: string | undefined, forwardedFor: string | null, proxies: Networks): string {
  if (peer === undefined) return UNKNOWN;
  let client = plainAddress(peer);
  for (const hop of (forwardedFor ?? "").split(",").reverse()) {
    // Behind a text that is no address the proxy that passed it on is the last one known.
    if (!proxies.has(client) || isIP(hop.trim()) === 0) break;
    client = plainAddress(hop.trim());
  }
  return client;
}
