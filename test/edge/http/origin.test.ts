import { expect, test } from "bun:test";
import { addressOf, networkOf } from "../../../src/edge/http/origin.ts";
import { stage } from "../stage.ts";

function from(peer: string | undefined, forwarded?: string): string {
  const headers: Record<string, string> = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return addressOf(new Request("http://localhost/", { headers }), peer);
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
