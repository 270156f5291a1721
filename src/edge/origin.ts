/** Where a request came from and where it was sent to, as far as that can be believed. */

/** A proxy on this machine is believed about whom it speaks for; nobody else is. */
const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;

/** The client's address. `peer`: the other end of the connection. */
export function addressOf(request: Request, peer: string | undefined): string {
  if (peer === undefined) return "an unknown address";
  const forwarded = request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim();
  return LOOPBACK.test(peer) && forwarded && /^[0-9a-fA-F.:]{2,45}$/.test(forwarded) ? forwarded : peer;
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
