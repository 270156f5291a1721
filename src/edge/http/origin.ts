/** Where a request came from and where it was sent to, as far as that can be believed. */
import { isIP } from "node:net";
import type { Arrival } from "./route.ts";

/** A proxy on this machine is believed about whom it speaks for; nobody else is. */
const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;

/** The other end of the connection. */
export function peerOf({ request, server }: Pick<Arrival, "request" | "server">): string | undefined {
  return server?.requestIP(request)?.address;
}

/** The client's address, as it is shown. `peer`: the other end of the connection. */
export function addressOf(request: Request, peer: string | undefined): string {
  if (peer === undefined) return "an unknown address";
  const forwarded = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "";
  return plain(LOOPBACK.test(peer) && isIP(forwarded) !== 0 ? forwarded : peer);
}

/** An IPv4 address that is written as one of IPv6 is itself. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** What tries are counted by: who has one address of an IPv6 network has all 2^64 of them. */
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

/** Whether the browser came by TLS, here or at the proxy in front. */
export function isSecure(request: Request): boolean {
  return new URL(request.url).protocol === "https:" || request.headers.get("x-forwarded-proto") === "https";
}

/** The address that the client used, without a slash at its end. */
export function baseOf(request: Request): string {
  const { host } = new URL(request.url);
  return `${isSecure(request) ? "https" : "http"}://${host}`;
}

/** Whether a page of another site sent this: browsers say so. */
export function isForeign(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin" && site !== "none") return true;
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  return !URL.canParse(origin) || new URL(origin).host !== new URL(request.url).host;
}
