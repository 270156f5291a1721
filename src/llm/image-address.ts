/** The addresses of images that a provider may be sent to: those of the public internet, so that no client looks into its network. */
import { isIP } from "node:net";
import { Networks } from "../std/networks.ts";

/** What IANA has given to special purposes. */
const SPECIAL = new Networks(
  [
    "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.0.2.0/24",
    "192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, 198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/3",
    "2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20",
  ].join(", "),
);

/** What IANA has given to hosts of the internet: all of IPv4, and of IPv6 an eighth. */
const UNICAST = new Networks("0.0.0.0/0, 2000::/3");

/** Names of no host of the internet: without a dot, or below a domain of local networks. */
const LOCAL_NAME = /^[^.]*$|\.(localhost|local|localdomain|internal|intranet|private|lan|home|corp|arpa)$/;

/** The address as every reader of it understands it; undefined: none of a public host, or not `https`, or with a password. */
export function publicAddress(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "") return undefined;
  const host = url.hostname.replace(/^\[|\]$|\.+$/g, "");
  const shut = isIP(host) === 0 ? LOCAL_NAME.test(host) : SPECIAL.has(host) || !UNICAST.has(host);
  return shut ? undefined : url.href;
}
