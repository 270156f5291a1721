/** Addresses and networks of the Internet Protocol, as an operator writes them: `127.0.0.0/8, ::1`. */
import { BlockList, isIP } from "node:net";

const FAMILY = { 4: "ipv4", 6: "ipv6" } as const;
const BITS = { 4: 32, 6: 128 } as const;

/** An IPv4 address in its own form where it is written as one of IPv6, so that both are the same address. */
export function plainAddress(address: string): string {
  const [, dotted] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (dotted !== undefined) return dotted;
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  const [front, back] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [front >> 8, front & 255, back >> 8, back & 255].join(".");
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

/** The /48 of an IPv6 network, which one customer of a provider often has whole; undefined for IPv4. */
export function siteOf(network: string): string | undefined {
  return network.endsWith("::/64") ? `${network.split(":").slice(0, 3).join(":")}::/48` : undefined;
}

/** This machine. */
export const LOOPBACK = "127.0.0.0/8, ::1";

/** A set of networks. */
export class Networks {
  private readonly list = new BlockList();

  /** `text`: one that `networksFault` has nothing against. */
  constructor(readonly text: string) {
    for (const one of partsOf(text)) {
      const { address, family, bits } = networkParts(one);
      if (family !== 0) this.list.addSubnet(address, bits, FAMILY[family]);
    }
  }

  has(address: string): boolean {
    const plain = plainAddress(address);
    const family = familyOf(plain);
    return family !== 0 && this.list.check(plain, FAMILY[family]);
  }
}

/** The part of the text that is no address and no network; undefined if all are. */
export function networksFault(text: string): string | undefined {
  return partsOf(text).find((one) => {
    const { family, bits, prefix } = networkParts(one);
    return family === 0 || !/^\d{1,3}$/.test(prefix) || bits > BITS[family];
  });
}

/** `none` is the empty set: a variable that is set to nothing counts as not set. */
function partsOf(text: string): string[] {
  if (text.trim() === "none") return [];
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one, index, all) => one !== "" || all.length === 1 || index < all.length - 1);
}

function networkParts(one: string) {
  const [given = "", said] = one.split("/");
  const address = plainAddress(given);
  const family = one.split("/").length > 2 ? 0 : familyOf(address);
  const prefix = said ?? String(family === 0 ? 0 : BITS[family]);
  // A network of mapped addresses is one of IPv4.
  const mapped = address !== given && said !== undefined ? 96 : 0;
  return { address, family, prefix, bits: Number(prefix) - mapped } as const;
}

function familyOf(address: string): 0 | 4 | 6 {
  // An address with a zone is one of this machine's links: no list can name it for everybody.
  const family = address.includes("%") ? 0 : isIP(address);
  return family === 4 || family === 6 ? family : 0;
}
