import { expect, test } from "bun:test";
import { clientOf, Origin } from "../../src/http/origin.ts";
import type { Arrival } from "../../src/http/route.ts";
import { LOOPBACK, Networks, networkOf, networksFault } from "../../src/std/networks.ts";
import { stage } from "../robot/stage.ts";

const HERE = new Networks(LOOPBACK);

function from(peer: string | undefined, forwarded?: string, proxies = HERE): string {
  return clientOf(peer, forwarded ?? null, proxies);
}

test("a proxy on this machine is believed about the address that it adds last, nobody else is", () => {
  expect([
    from("203.0.113.9"),
    from("203.0.113.9", "10.0.0.1"),
    from("127.0.0.1", "10.0.0.1, 198.51.100.7"),
    from("::1", "2001:db8::1"),
    from("::ffff:127.0.0.1", "198.51.100.7"),
    from("::ffff:203.0.113.9"),
    from("127.0.0.1", "198.51.100.7:4711"),
    from("127.0.0.1", "<b>"),
    from(undefined),
  ]).toEqual([
    "203.0.113.9",
    "203.0.113.9",
    "198.51.100.7",
    "2001:db8::1",
    "198.51.100.7",
    "203.0.113.9",
    "127.0.0.1",
    "127.0.0.1",
    "an unknown address",
  ]);
});

test("TENDON_TRUSTED_PROXIES: of a chain of proxies the rightmost hop that is none of them is the client", () => {
  const proxies = new Networks("10.1.0.0/16, 2001:db8:aa::/48, ::ffff:192.0.2.0/120");
  const chains: [peer: string, forwarded: string, client: string][] = [
    // Two proxies of ours; what stands before the client's address is the client's own invention.
    ["10.1.0.1", "1.2.3.4, 198.51.100.7, 10.1.9.9", "198.51.100.7"],
    ["10.1.0.1", "198.51.100.7, 2001:DB8:AA:1::5, 10.1.9.9", "198.51.100.7"],
    ["10.1.0.1", "10.1.0.2, 10.1.0.3", "10.1.0.2"],
    ["10.1.0.1", "", "10.1.0.1"],
    ["10.1.0.1", "198.51.100.7,, 10.1.9.9", "10.1.9.9"],
    // In the form of IPv6 it is the same IPv4 address: of the peer, of a hop, of a network.
    ["::ffff:10.1.0.1", "::ffff:198.51.100.7", "198.51.100.7"],
    ["::ffff:0a01:0001", "::ffff:c633:6407", "198.51.100.7"],
    ["192.0.2.5", "198.51.100.7", "198.51.100.7"],
    ["2001:db8:aa::1", "2001:db8::9", "2001:db8::9"],
    // Not on the list: nothing that it says is believed, loopback included.
    ["10.2.0.1", "198.51.100.7", "10.2.0.1"],
    ["127.0.0.1", "198.51.100.7", "127.0.0.1"],
    ["2001:db8:ab::1", "198.51.100.7", "2001:db8:ab::1"],
  ];
  expect(chains.map(([peer, forwarded]) => from(peer, forwarded, proxies))).toEqual(
    chains.map(([, , client]) => client),
  );
  expect(from("127.0.0.1", "198.51.100.7", new Networks("none"))).toBe("127.0.0.1");
});

test("TENDON_TRUSTED_PROXIES: only from a trusted proxy are scheme and host of the client's request believed", () => {
  const of = (peer: string | undefined, headers: Record<string, string>) => {
    const request = new Request("http://inside:8080/sign-in", { headers });
    const server = { requestIP: () => (peer === undefined ? null : { address: peer, port: 1, family: "IPv4" }) };
    const { isSecure, base, isForeign } = new Origin({ request, server: server as unknown as Arrival["server"] }, HERE);
    return [isSecure, base, isForeign];
  };
  const said = {
    "x-forwarded-proto": "https",
    "x-forwarded-host": "robots.example.org",
    origin: "https://robots.example.org",
  };
  expect([
    of("127.0.0.1", said),
    of("203.0.113.9", said),
    of(undefined, said),
    of("127.0.0.1", { "x-forwarded-proto": "http, https", "x-forwarded-host": "evil.example, robots.example.org:443" }),
    of("127.0.0.1", { "x-forwarded-proto": "<", "x-forwarded-host": "a/b" }),
    of("127.0.0.1", { "x-forwarded-host": "user@evil.example" }),
  ]).toEqual([
    [true, "https://robots.example.org", false],
    [false, "http://inside:8080", true],
    [false, "http://inside:8080", true],
    [true, "https://robots.example.org:443", false],
    [false, "http://inside:8080", false],
    [false, "http://inside:8080", false],
  ]);
});

test("a list of networks names what is wrong in it", () => {
  const wrong = ["10.0.0.0/33", "10.0.0.0/", "10.0.0", "::/129", "10.0.0.1/8/8", "fe80::1%eth0", "10.0.0.0/-1"];
  expect(wrong.map((one) => networksFault(`::1, ${one}`))).toEqual(wrong);
  expect(["none", LOOPBACK, "::/0", "0.0.0.0/0,", "::ffff:10.0.0.0/104"].map(networksFault)).toEqual(
    Array(5).fill(undefined),
  );
});

test("tries are counted by IPv4 address and by IPv6 network, however it is written", () => {
  const one = ["2001:db8:0:1::1", "2001:DB8:0:1:ffff::", "2001:db8:0:1:2:3:4:5", "2001:db8::1:0:0:0:9"].map(networkOf);
  expect(one).toEqual(Array(4).fill("2001:db8:0:1::/64"));
  expect([networkOf("2001:db8:0:2::1"), networkOf("::1"), networkOf("198.51.100.7")]).toEqual([
    "2001:db8:0:2::/64",
    "0:0:0:0::/64",
    "198.51.100.7",
  ]);
});

test("a Host that is none is 404, not a fault", async () => {
  const at = await stage();
  for (const path of ["/sign-in", "/oauth/device_authorization", "/healthz"]) {
    const request = new Request("http://localhost/");
    Object.defineProperty(request, "url", { value: `http://][${path}` });
    const response = await at.handle(request);
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: "not_found" } }]);
  }
});
