/** The addresses of a request: the client's, and the one that the client used for us. Forwarded headers are taken from a proxy on this machine only. */
import { isIP } from "node:net";
import type { Arrival } from "./route.ts";

/** Addresses whose `X-Forwarded-For` is believed. */
const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;

/** The other end of the connection. */
export function peerOf({ request, server }: Pick<Arrival, "request" | "server">): string | undefined {
  return server?.requestIP(request)?.address;
}

/** The client's address, as people see it. `peer`: the other end of the connection. */
export function addressOf(request: Request, peer: string | undefined): string {
  if (peer === undefined) return "an unknown address";
  const forwarded = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "";
  return plain(LOOPBACK.test(peer) && isIP(forwarded) !== 0 ? forwarded : peer);
}

/** An IPv4 address in its own form where it is written as one of IPv6. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** The network that tries are counted by: of IPv6 the /64, since one client usually has all of its 2^64 addresses. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail = ""] = address.toLowerCase().split("::");
  const [front, back] = [head, tail].map((part) => part.split(":").filter((group) => group !== "")) as [
    string[],
    string[],
  ];
  const missing = address.includes("::") ? 8 - front.length - back.length : 0;
  const groups = [...front, ...Array(Math.max(0, missing)).fill("0"), ...back];
  return `${groups.slice(0, 4).join(":")}::/64`;
}

/** Whether the browser uses TLS, to us or to the proxy in front. */
export function isSecure(request: Request): boolean {
  return new URL(request.url).protocol === "https:" || request.headers.get("x-forwarded-proto") === "https";
}

/** The address that the client used, without a slash at its end. */
export function baseOf(request: Request): string {
  const { host } = new URL(request.url);
  return `${isSecure(request) ? "https" : "http"}://${host}`;
}

/** Whether a page of another site sent this, by the headers that browsers set. */
export function isForeign(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin" && site !== "none") return true;
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  return !URL.canParse(origin) || new URL(origin).host !== new URL(request.url).host;
}
