import { afterEach, describe, expect, type Mock, spyOn, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { imagePart, imageUrl, jpeg, observation, type Stage, stage, textPart, withContent } from "../stage.ts";

/** Every text that is parsed while a request is handled, by its length. */
let parsed: Mock<typeof JSON.parse> | undefined;

afterEach(() => parsed?.mockRestore());

function watchParser(): () => number {
  parsed = spyOn(JSON, "parse");
  const { calls } = parsed.mock;
  return () => Math.max(0, ...calls.map(([text]) => text.length));
}

/** Status, code and the field at fault. */
type Is = readonly (number | string | undefined)[];

/** Status and code, the field at fault, and the longest text that was parsed on the event loop. */
async function answer(at: Stage, body: string) {
  const longest = watchParser();
  const response = await at.chat(body);
  const characters = longest();
  parsed?.mockRestore();
  const { error } = (await response.json()) as { error?: { code: string; param?: string } };
  expect(at.service.http.ingress.bytes).toBe(0);
  return { is: [response.status, error?.code, error?.param], characters };
}

const parts = [textPart(), imagePart(), imagePart(), imagePart()];
const { messages: _, ...rest } = observation();
const place = { ...observation(), session_id: "s" };

/** Bodies with `TEXT` where a text may stand, and what is answered when it is long. */
const PLACES: readonly [string, unknown, Is][] = [
  [
    "a text part",
    withContent([textPart("TEXT"), ...parts.slice(1)]),
    [400, "instruction_too_long", "messages[0].content"],
  ],
  ["a content string", withContent("TEXT"), [200, undefined, undefined]],
  ["a session_id", observation({ session_id: "TEXT" }), [400, "invalid_session_id", "session_id"]],
  ["an observation_id", observation({ observation_id: "TEXT" }), [400, "invalid_observation_id", "observation_id"]],
  ["a model", observation({ model: "TEXT" }), [400, "model_not_found", "model"]],
  [
    "a URL",
    withContent([textPart(), imagePart("TEXT"), ...parts.slice(2)]),
    [400, "unsupported_image_format", "messages[0].content[1].image_url.url"],
  ],
  [
    "a data URL's type",
    withContent([textPart(), imagePart("data:image/TEXT"), ...parts.slice(2)]),
    [400, "unsupported_image_format", "messages[0].content[1].image_url.url"],
  ],
  [
    "a data URL's base64",
    withContent([textPart(), imagePart("data:image/jpeg;base64,TEXT"), ...parts.slice(2)]),
    [413, "image_too_large", "messages[0].content[1].image_url.url"],
  ],
  ["a part's type", withContent([{ type: "TEXT" }]), [400, "invalid_content_part", "messages[0].content[0]"]],
  ["a role", { ...rest, messages: [{ role: "TEXT" }] }, [400, "no_user_message", "messages"]],
  ["messages", { ...rest, messages: "TEXT" }, [400, "messages_missing", "messages"]],
  ["a robot_state", { ...place, robot_state: "TEXT" }, [400, "state_shape_mismatch", "robot_state"]],
  [
    "a value of the robot_state",
    { ...place, robot_state: { joint_position: ["TEXT"] } },
    [400, "state_shape_mismatch", "robot_state.joint_position"],
  ],
  ["a seed", observation({ seed: "TEXT" }), [400, "invalid_parameter", "seed"]],
  ["an unknown field", observation({ unknown: { a: ["TEXT"] } }), [200, undefined, undefined]],
  ["a key", observation({ TEXT: 1 }), [200, undefined, undefined]],
  ["no object", ["TEXT"], [400, "invalid_body", undefined]],
];

describe("8 MiB of escapes in one string are not parsed on the event loop, and the answer is that of the field", () => {
  for (const [name, body, expected] of PLACES) {
    test(name, async () => {
      const at = await stage();
      at.engine.instructionBytesMax = 100_000;
      const text = JSON.stringify(body);
      for (const piece of ["\\\\", "\\ud83d\\ude00"]) {
        const room = LIMITS.robotBodyBytesMax - text.length;
        const large = text.replace("TEXT", piece.repeat(Math.floor(room / piece.length)));
        const { is, characters } = await answer(at, large);
        expect([piece, is]).toEqual([piece, [...expected]]);
        expect(characters).toBeLessThan(64 * 1024);
      }
    });
  }
});

test("8 MiB of blanks are no instruction", async () => {
  const at = await stage();
  at.engine.instructionBytesMax = 100_000;
  const blanks = textPart(" \n".repeat(2 * 1024 * 1024));
  const { is } = await answer(at, JSON.stringify(withContent([textPart(" "), blanks, ...parts.slice(1)])));
  expect(is).toEqual([400, "instruction_missing", "messages[0].content"]);
});

describe("a large body is answered as a small one", () => {
  const file = jpeg(60_000);
  const large = (change: (url: string) => string, images = [file, file, file]) =>
    JSON.stringify(withContent([textPart("fold — 折り"), ...images.map((one) => imagePart(imageUrl(one)))])).replace(
      imageUrl(file),
      change,
    );

  test("its images reach the decoders byte for byte, and its text the model", async () => {
    const at = await stage();
    const decoded: Uint8Array[] = [];
    at.engine.script.decode = async (jpeg) => {
      // The body's memory is given back when the request has ended.
      decoded.push(jpeg.slice());
      return undefined;
    };
    const files = [1, 2, 3].map((size) =>
      Uint8Array.from(jpeg(50_000 * size), (byte, at) => (at < 3 ? byte : at * size)),
    );
    for (const text of [large((url) => url, files), large((url) => url, files).replaceAll("/", "\\/")]) {
      decoded.length = 0;
      expect((await answer(at, text)).is).toEqual([200, undefined, undefined]);
      expect(decoded).toEqual(files);
      expect(at.engine.observations.at(-1)?.instruction).toBe("fold — 折り");
    }
  });

  test("with an observation_id it is the same observation whether its frames came large or small", async () => {
    const at = await stage();
    const body = withContent([textPart(), ...[1, 2, 3].map(() => imagePart())], {
      session_id: "s",
      observation_id: "o",
    });
    const padded = JSON.stringify({ ...body, padding: " ".repeat(100_000) });
    const [first, second] = [await at.chat(body), await at.chat(padded)];
    expect([first.status, second.status, second.headers.get("idempotent-replayed")]).toEqual([200, 200, "true"]);
    expect(at.engine.observations.length).toBe(1);
  });
});
