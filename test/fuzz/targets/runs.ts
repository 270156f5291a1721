/** Ranges, conditions, digests and paths of run storage. */
import { resolve } from "node:path";
import { digestField, readDigest } from "../../../src/runs/http/digest.ts";
import { isFresh, readHttpDate, readRange } from "../../../src/runs/http/range.ts";
import { query, queryNumber, readFileKey } from "../../../src/runs/http/target.ts";
import { Failure } from "../../../src/std/failure.ts";
import { must, type Target } from "../target.ts";

const SRC = resolve(import.meta.dir, "../../../src");
const latin = (input: Uint8Array) => Buffer.from(input).toString("latin1");

/** The text of a header, which has no line breaks and no zero. */
function headerOf(input: Uint8Array): string {
  return latin(input).replace(/[\r\n\0]/g, " ");
}

/** The bytes that RFC 9110 section 14.1.2 names, one by one, of a file so small that they can be. */
function bytesNamed(spec: string, size: number): number[] | undefined {
  const found = /^(\d*)-(\d*)$/.exec(spec);
  if (!found) return undefined;
  const [, first = "", last = ""] = found;
  const all = Array.from({ length: size }, (_, index) => index);
  if (first === "") return last === "" ? undefined : all.filter((at) => at >= size - Number(last));
  if (last !== "" && Number(last) < Number(first)) return undefined;
  return all.filter((at) => at >= Number(first) && (last === "" || at <= Number(last)));
}

const kindOf = (range: unknown) => (typeof range === "string" ? range : "part");
/** A failure's words without what they quote. */
const wordsOf = (failure: Failure) => failure.message.replace(/'[^']*'/g, "''");

export const ranges: Target = {
  name: "ranges",
  guides: [`${SRC}/runs/http/range.ts`],
  seeds: ["9bytes=0-4", "0bytes=-1", "5bytes=2-", "3bytes=0-0,2-2", "7bytes=9-"],
  words: ["bytes=", "-", ",", "Bytes = "],
  run(input) {
    const size = (input[0] ?? 0) % 16;
    const header = headerOf(input.subarray(1));
    const range = readRange(header, size);
    if (typeof range === "object") {
      must(
        Number.isInteger(range.from) && range.from >= 0 && range.from < range.to && range.to <= size,
        "a range inside the file",
      );
    }
    const [, spec] = /^\s*bytes=\s*(\d*-\d*)\s*$/i.exec(header) ?? [];
    if (spec === undefined) return kindOf(range);
    const named = bytesNamed(spec, size);
    if (named === undefined) must(range === "whole", "what is malformed is answered whole");
    else if (named.length > 0)
      must(
        typeof range === "object" && range.from === named[0] && range.to === (named.at(-1) ?? 0) + 1,
        "the bytes that are named",
      );
    else must(typeof range === "string", "no bytes, no range");
    return `${kindOf(range)}, simple`;
  },
};

export const conditions: Target = {
  name: "conditions",
  guides: [`${SRC}/runs/http/range.ts`],
  seeds: ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", '"a", W/"b"'],
  words: ["GMT", "W/", '"', "Feb 30", "-"],
  run(input) {
    const text = headerOf(input);
    const seconds = readHttpDate(text, 1_700_000_000);
    if (seconds !== undefined) {
      must(Number.isInteger(seconds), "whole seconds");
      const again = readHttpDate(new Date(seconds * 1000).toUTCString(), 1_700_000_000);
      // A leap second is the second after it.
      must(again === seconds || /:60\b/.test(text), `the same date in today's form: ${again} and ${seconds}`);
    }
    const fresh = isFresh(new Headers({ "if-none-match": text }), '"sha256-00"', 0);
    if (!text.includes('"sha256-00"') && text.trim() !== "*") must(!fresh, "fresh only with the tag");
    return `${seconds === undefined ? "no date" : "a date"}, ${fresh}`;
  },
};

export const digests: Target = {
  name: "digests",
  guides: [`${SRC}/runs/http/digest.ts`],
  seeds: [
    digestField(new Uint8Array(32)),
    "sha-512=:AAAA:, sha-256=:AAAA:;q=1",
    'a=(1 "b" %"c%c3%a9");d=?1, b=@5',
    "f".repeat(64),
  ],
  words: ["sha-256=:", ":", "=", ";", ", ", "(", ")", '"', '%"', "?1", "@"],
  run(input) {
    const text = headerOf(input);
    const told: string[] = [];
    for (const name of ["content-digest", "x-content-sha256"]) {
      const digest = readDigest(new Headers({ [name]: text }));
      told.push(digest instanceof Failure ? wordsOf(digest) : String(digest?.length));
      must(digest === undefined || digest instanceof Failure || digest.length === 32, "a digest has 32 bytes");
      if (digest instanceof Uint8Array) {
        const again = readDigest(new Headers({ "content-digest": digestField(digest) }));
        must(again instanceof Uint8Array && Buffer.compare(again, digest) === 0, "a digest reads back");
      }
    }
    return told.join("; ");
  },
};

export const paths: Target = {
  name: "paths",
  guides: [`${SRC}/runs/http/target.ts`, `${SRC}/std/run-names.ts`],
  seeds: ["yam/run-1/files/a/b.mp4", "yam/r/files/%2e%2e/x", "yam/r/files/a%2Fb", "yam/r/uploads/é?upload_id=u&part=1"],
  words: ["%2e", "%2F", "%5C", "%00", "../", "//", "%C3%A9", "?part=", "&", "%"],
  run(input) {
    const url = `http://h/v1/robot/runs/${latin(input).replace(/[\r\n\t#]/g, "")}`;
    if (!URL.canParse(url)) return "no address";
    const key = readFileKey("acct", url);
    if (!(key instanceof Failure)) {
      const segments = key.path.split("/");
      must(segments.length <= 16 && Buffer.byteLength(key.path) <= 512, "a bounded path");
      must(!segments.some((one) => one === "" || one === "." || one === ".."), "no empty or dotted segment");
      must(!/[\\\p{Cc}]/u.test(key.path), "no backslash, no control character");
      for (const name of [key.robot, key.run]) must(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name), "a name");
    }
    const part = queryNumber(url, "part", 1, 100);
    must(part === undefined || part instanceof Failure || (part >= 1 && part <= 100), "a number inside its bounds");
    const id = query(url, "upload_id");
    return [key, part, id].map((one) => (one instanceof Failure ? wordsOf(one) : typeof one)).join("; ");
  },
};
