/** Addresses of images: none unless the operator says so, and then none of a network that strangers cannot reach. */
import { describe, expect, test } from "bun:test";
import { publicAddress } from "../../src/llm/image-address.ts";
import { ask, expectLedger, PROTOCOLS } from "./asking.ts";
import { LIVE, LlmStage } from "./stage.ts";

const DATA = "data:image/png;base64,iVBORw0KGgo=";
const PLACE = "input[1].content[2].image_url";

const showing = (image_url: string) => ({
  input: [
    { role: "developer", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "input_text", text: "Two." },
        { type: "input_image", image_url: DATA },
        { type: "input_image", image_url },
      ],
    },
  ],
});

const SHUT: readonly string[] = [
  ...["http://example.org/a.png", "ftp://example.org/a.png", "//example.org/a.png", "https:", "https://", "https:///"],
  ...["https://me:secret@example.org/", "https://me@example.org/", "https://exa mple.org/", "https://[::1", ""],
  ...["https://localhost/", "https://LOCALHOST./", "https://a.localhost/", "https://metadata/", "https://intranet../"],
  ...["https://printer.local/", "https://metadata.google.internal/", "https://metadata.google.internal./"],
  ...["https://router.lan/", "https://nas.home.arpa/", "https://db.corp/"],
  ...["https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/"],
  ...["https://127.0.0.1./", "https://127.0.0.1../", "https://%31%32%37.0.0.1/", "https://１２７.0.0.1/", "https://0/"],
  ...["https://10.0.0.1/", "https://10.255.255.255:8443/", "https://172.16.0.1/", "https://172.31.255.254/"],
  ...[
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://100.127.1.1/",
  ],
  ...[
    "https://0.0.0.0/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://198.18.0.1/",
    "https://192.0.0.192/",
  ],
  ...["https://[::1]/", "https://[::]/", "https://[0:0:0:0:0:0:0:1]/", "https://[fe80::1]/", "https://[fc00::1]/"],
  ...["https://[fd00:ec2::254]/", "https://[ff02::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:a9fe:a9fe]/"],
  ...["https://[::127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[2001:db8::1]/"],
];

const OPEN: Readonly<Record<string, string>> = {
  "https://example.org/a.png?x=1#y": "https://example.org/a.png?x=1#y",
  "HTTPS://EXAMPLE.org": "https://example.org/",
  "https://example.org\\@127.0.0.1/": "https://example.org/@127.0.0.1/",
  "https://8.8.8.8:8443/a": "https://8.8.8.8:8443/a",
  "https://134744072/": "https://8.8.8.8/",
  "https://172.32.0.1/": "https://172.32.0.1/",
  "https://100.63.255.255/": "https://100.63.255.255/",
  "https://[2606:4700::1111]/": "https://[2606:4700::1111]/",
  "https://local.example/": "https://local.example/",
};

describe("an address", () => {
  test.each(SHUT)("%s is none of a public host", (address) => expect(publicAddress(address)).toBeUndefined());
  test.each(Object.entries(OPEN))("%s is sent as %s", (address, sent) => expect(publicAddress(address)).toBe(sent));
});

describe.each(PROTOCOLS)("%s", (protocol) => {
  test("by default an image is data alone: an address is 422 with its place, and nothing is held or sent", async () => {
    await using stage = await LlmStage.start({ protocol });
    for (const manner of ["live", "stream", "job"] as const) {
      const told = await ask(stage, manner, showing("https://example.org/a.png"));
      expect([told.status, told.code, told.param]).toEqual([422, "invalid_request", PLACE]);
    }
    expect(stage.provider.exchanges).toBeEmpty();
    expect((await ask(stage, "live", showing(DATA))).status).toBe(200);
  });

  test("with image_urls the provider gets the address as it was understood; those of a private network are 422", async () => {
    await using stage = await LlmStage.start({ protocol, table: { image_urls: true } });
    for (const address of ["https://127.0.0.1/", "http://example.org/a.png", "https://db.internal/"]) {
      const told = await ask(stage, "live", showing(address));
      expect([told.status, told.code, told.param]).toEqual([422, "invalid_request", PLACE]);
    }
    expect(stage.provider.exchanges).toBeEmpty();
    for (const manner of ["live", "job"] as const)
      expect((await ask(stage, manner, showing("https://EXAMPLE.org/a.png"))).status).toBe(200);
    for (const { body } of stage.provider.exchanges)
      expect(JSON.stringify(body)).toContain('"https://example.org/a.png"');
    await expectLedger(stage, "something");
  });
});

test("a model without a provider takes no address: the field is told before the missing provider", async () => {
  await using stage = await LlmStage.start({ without: [LIVE] });
  expect((await ask(stage, "live", showing("https://example.org/a.png"))).param).toBe(PLACE);
  expect((await ask(stage, "live", showing(DATA))).code).toBe("unconfigured");
});
