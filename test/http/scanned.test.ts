import { afterAll, describe, expect, test } from "bun:test";
import { Bodies } from "../../src/http/bodies.ts";
import { type JsonObject, parseObject } from "../../src/http/json.ts";
import { scanObject } from "../../src/http/scanned.ts";
import { LongText } from "../../src/http/scanned-body.ts";
import { LIMITS } from "../../src/limits.ts";
import { Dice, damagedText, randomJson } from "./random-json.ts";

const bodies = new Bodies();
afterAll(() => bodies.close());

const atOnce = <T>(work: () => T) => work();
const utf8 = (text: string) => new TextEncoder().encode(text);

/** The value as texts, the same as with images wanted once every `LongText` is read, or what is wrong. */
async function scanned(bytes: Uint8Array): Promise<JsonObject | string> {
  const cut = Math.floor(bytes.length / 3);
  const parts = [bytes.subarray(0, cut), bytes.subarray(cut)];
  const read = async (wanted: "texts" | "images") => {
    const found = await scanObject(bodies, { parts: [...parts], length: bytes.length, turn: 0 }, wanted, atOnce);
    if (found === undefined) throw new Error("the scanner is closed");
    if (typeof found === "string") return found;
    const value = wanted === "texts" ? found.value : allRead(found.value);
    found.release();
    return value;
  };
  const [texts, images] = [await read("texts"), await read("images")];
  // With "images" long keys are references, which are not compared.
  if (!hasLongKeys(images)) expect(images).toEqual(texts);
  return texts as JsonObject | string;
}

function allRead(value: unknown): unknown {
  if (value instanceof LongText) {
    const text = value.toString();
    expect([value.length, value.isBlank]).toEqual([text.length, text.trim() === ""]);
    return text;
  }
  if (Array.isArray(value)) return value.map(allRead);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, allRead(field)]));
}

/** A long key is its placeholder where images are wanted; a client's own key may look like one. */
function hasLongKeys(value: unknown): boolean {
  return /"\u007f[^"]*":/.test(JSON.stringify(value));
}

/** Both have the same value, with its fields in the same order, or are refused. */
async function expectSame(bytes: Uint8Array): Promise<void> {
  const [old, now] = [parseObject(bytes), await scanned(bytes)];
  if (typeof old === "string" || typeof now === "string") return expect([typeof old, now]).toEqual([typeof now, now]);
  expect(JSON.stringify(now)).toBe(JSON.stringify(old));
  expect(now).toEqual(old);
}

describe("a body read on native threads has the value and the verdict that the parser gives", () => {
  test("of random JSON", async () => {
    const dice = new Dice("whole");
    for (let round = 0; round < 400; round += 1) await expectSame(utf8(randomJson(dice)));
  });

  test("of random JSON with bytes changed, cut, doubled and put in", async () => {
    const dice = new Dice("damaged");
    for (let round = 0; round < 3_000; round += 1) await expectSame(damagedText(dice, utf8(randomJson(dice))));
  });

  test("of what is rare", async () => {
    const [long, escapes] = ["x".repeat(300), "\\n".repeat(150)];
    for (const text of [
      `{"__proto__":"${long}","a":{"__proto__":1,"${long}":2}}`,
      `{"${long}":1,"b":2,"${long}":"${escapes}"}`,
      `{"${escapes}":1,"10":2,"9":3,"\u007f0":4,"\\u007f1":5}`,
      `{"a":"\u007f0","b":"\u007f","c":"\\u007f0","d":"\\u0041\\u0042","e":"${long}"}`,
      `{"a":"\\ud800","b":"${"\\ud83d\\ude00".repeat(99)}","c":"${"\\udc00".repeat(99)}${"€".repeat(99)}"}`,
      `{"a":"${" \\n\u00a0\ufeff".repeat(99)}","b":"${" \\n\u00a0\u200b".repeat(99)}"}`,
      `{"a":[-0,0.0,1e400,-1e400,1e-400,${"9".repeat(400)},0.${"1".repeat(395)},1${"0".repeat(99)}e-99]}`,
      `\ufeff{"a":1}`,
      `\ufeff\ufeff{"a":1}`,
      `[{"a":1}]`,
      `"${long}"`,
      `{"a":"data:image/jpeg;base64,${"/9j/".repeat(40)}","b":"data:image/jpeg;base64,${"\\/9j\\/".repeat(40)}"}`,
      `{"a":"data:image/jpeg;base64,${"/9j!".repeat(40)}","b":"data:image\\u002fjpeg;base64,${"é".repeat(40)}"}`,
    ])
      await expectSame(utf8(text));
    await expectSame(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d));
    await expectSame(Uint8Array.of(0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d));
  });

  test("of depth 64 and 20,000 values, and of one more of either", async () => {
    const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    const wide = (values: number) => `{"a":[${Array(values - 2).fill("{}")}]}`;
    for (const text of [nested(64), nested(65), wide(20_000), wide(20_001), "[".repeat(200_000), '"'.repeat(100_000)]) {
      const [old, now] = [parseObject(utf8(text)), await scanned(utf8(text))];
      if (text.length < 100_000) expect(now).toEqual(old);
      else expect([typeof old, typeof now]).toEqual(["string", "string"]);
    }
  });
});

test("the JPEG of a data URL is decoded as strictly as Uint8Array.fromBase64 does", async () => {
  const dice = new Dice("jpeg");
  const prefix = "data:image/jpeg;base64,";
  for (let round = 0; round < 300; round += 1) {
    const file = Uint8Array.from({ length: 60 + dice.below(400) }, () => dice.below(256));
    const base64 = [...file.toBase64()];
    if (round % 2 === 1) base64[dice.below(base64.length)] = [..." =_-\né+/A"][round % 9] ?? "";
    const url = prefix + base64.join("");
    const body = utf8(JSON.stringify({ url }));
    const found = await scanObject(bodies, { parts: [body], length: body.length, turn: 0 }, "images", atOnce);
    if (typeof found !== "object" || !(found.value.url instanceof LongText)) throw new Error("no long text");
    const jpeg = found.value.url.jpeg;
    const padding = url.endsWith("==") ? 2 : url.endsWith("=") ? 1 : 0;
    expect(jpeg?.bytes).toBe(Math.floor(((url.length - prefix.length - padding) * 3) / 4));
    expect(jpeg?.file?.toHex()).toBe(strictly(url.slice(prefix.length))?.toHex());
    found.release();
  }
});

function strictly(base64: string): Uint8Array | undefined {
  try {
    const bytes = Uint8Array.fromBase64(base64, { lastChunkHandling: "strict" });
    return Math.ceil(bytes.length / 3) * 4 === base64.length ? bytes : undefined;
  } catch {
    return undefined;
  }
}

describe("what is parsed on the event loop is short", () => {
  const MiB = 1024 * 1024;
  const skeleton = async (text: string, wanted: "texts" | "images") => {
    const body = utf8(text);
    const found = await bodies.scan({ parts: [body], length: body.length, turn: 0 }, wanted);
    if (typeof found === "string") throw new Error(found);
    found.release();
    return found.skeleton.length;
  };

  test("8 MiB of escapes in one string, as a value and as a key", async () => {
    for (const piece of ["\\\\", "\\n", "\\u0041", "\\ud83d\\ude00"]) {
      const string = piece.repeat(Math.floor((8 * MiB - 10) / piece.length));
      for (const wanted of ["texts", "images"] as const) {
        expect(await skeleton(`{"a":"${string}"}`, wanted)).toBeLessThan(32);
        expect(await skeleton(`{"${string}":1}`, wanted)).toBeLessThan(32);
      }
    }
  });

  test("8 MiB in 20,000 values: of strings, of keys, of digits, of blanks", async () => {
    const many = (one: (at: number) => string) => Array.from({ length: 19_900 }, (_, at) => one(at)).join(",");
    const escapes = "\\\\".repeat(195);
    for (const text of [
      `{"a":[${many(() => `"${escapes}"`)}]}`,
      `{${many((at) => `"${at}${escapes}":0`)}}`,
      `{"a":[${many(() => "1".repeat(395))}]}`,
      `{"a":[${many(() => `${" ".repeat(395)}1`)}]}`,
    ]) {
      expect(text.length).toBeGreaterThan(7 * MiB);
      // 24 bytes a value: a placeholder, or a number in its shortest form.
      for (const wanted of ["texts", "images"] as const) {
        expect(await skeleton(text, wanted)).toBeLessThan(24 * 20_000);
      }
    }
  });
});

test("the bytes of a body that native memory has are kept by nobody else", async () => {
  const body = new TextEncoder().encode(JSON.stringify({ note: "x".repeat(LIMITS.parsedBodyBytesMax) }));
  const parts = [body.subarray(0, 9), body.subarray(9)];
  const found = await scanObject(bodies, { parts, length: body.length, turn: 0 }, "images", atOnce);
  expect([typeof found, parts]).toEqual(["object", []]);
  if (typeof found === "object") found.release();
});

test("a body that is not released is not read after its bodies are closed, and none is scanned any more", async () => {
  const own = new Bodies();
  const body = utf8(JSON.stringify({ a: "x".repeat(1_000) }));
  const scan = () => scanObject(own, { parts: [body], length: body.length, turn: 0 }, "images", atOnce);
  const found = await scan();
  const late = scan();
  await own.close();
  expect([await late, await scan()]).toEqual([undefined, undefined]);
  if (typeof found === "object") found.release();
});

test("a text of a released body is a bug of ours, not another client's text", async () => {
  const body = utf8(JSON.stringify({ a: "x".repeat(1_000) }));
  const found = await scanObject(bodies, { parts: [body], length: body.length, turn: 0 }, "images", atOnce);
  if (typeof found !== "object") throw new Error("no object");
  found.release();
  expect(() => String(found.value.a)).toThrow("not released");
});
