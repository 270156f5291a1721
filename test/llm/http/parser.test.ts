/** HTTP/1.1 responses as RFC 9112 has them: where a body ends, and what is refused because that is not certain. */
import { describe, expect, test } from "bun:test";
import { Parser } from "../../../src/llm/provider/http/parser.ts";

interface Read {
  readonly status: number[];
  readonly body: string;
  readonly ended: number;
  readonly malformed: string | undefined;
  readonly reusable: boolean;
  readonly whole: boolean;
}

/** The bytes in pieces of `size`, then the end of the connection. */
function read(text: string, size = text.length): Read {
  const status: number[] = [];
  const parts: string[] = [];
  let ended = 0;
  const parser = new Parser({
    head: (head) => status.push(head.status),
    body: (piece) => parts.push(Buffer.from(piece).toString("latin1")),
    end: () => {
      ended += 1;
    },
  });
  const bytes = Buffer.from(text, "latin1");
  let malformed: string | undefined;
  for (let at = 0; at < bytes.length && malformed === undefined; at += size) {
    malformed = parser.feed(bytes.subarray(at, at + size));
  }
  const { reusable } = parser;
  const whole = malformed === undefined && parser.close();
  return { status, body: parts.join(""), ended, malformed, reusable, whole };
}

const OK = "HTTP/1.1 200 OK\r\n";

const GOOD: Readonly<Record<string, readonly [text: string, body: string, reusable: boolean]>> = {
  "by its length": [`${OK}Content-Length: 5\r\n\r\nhello`, "hello", true],
  "of length 0": [`${OK}content-length:0\r\n\r\n`, "", true],
  "in chunks": [
    `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n, the rest\r\n0\r\n\r\n`,
    "hello, the rest",
    true,
  ],
  "in chunks with extensions and a trailer": [
    `${OK}transfer-encoding: Chunked\r\n\r\n5;a="b;c"\r\nhello\r\n000 \r\nX-Sum: 1\r\nY: 2\r\n\r\n`,
    "hello",
    true,
  ],
  "until the end of the connection": [`${OK}\r\nhello`, "hello", false],
  "on a connection that is to be closed": [
    `${OK}Connection: keep-alive, Close\r\nContent-Length: 2\r\n\r\nhi`,
    "hi",
    false,
  ],
  "of HTTP/1.0, which closes": ["HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi", false],
  "of HTTP/1.0 that keeps": ["HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi", "hi", true],
  "with both framings, whose connection is not used again": [
    `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
    "hi",
    false,
  ],
  "behind interim ones": [
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${OK}Content-Length: 2\r\n\r\nhi`,
    "hi",
    true,
  ],
  "without a reason": ["HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", "hi", true],
  "with bytes behind it, whose connection is not used again": [`${OK}Content-Length: 2\r\n\r\nhi!`, "hi", false],
};

describe("a response", () => {
  test.each(Object.entries(GOOD))("%s is the same, however its bytes arrive", (_, [text, body, reusable]) => {
    for (const size of [text.length, 1, 2, 3, 7]) {
      expect(read(text, size)).toEqual({ status: [200], body, ended: 1, malformed: undefined, reusable, whole: true });
    }
  });

  test("of 204 and 304 has no body, whatever it says", () => {
    for (const status of [204, 304]) {
      const { body, ended, reusable } = read(`HTTP/1.1 ${status} X\r\nContent-Length: 5\r\n\r\n`);
      expect([body, ended, reusable]).toEqual(["", 1, true]);
    }
  });

  test("that breaks off anywhere is not whole", () => {
    for (const [name, [text]] of Object.entries(GOOD)) {
      if (/until the end|behind it/.test(name)) continue;
      for (let length = 1; length < text.length; length += 1) {
        expect([name, length, read(text.slice(0, length)).whole]).toEqual([name, length, false]);
      }
    }
  });
});

const BAD: Readonly<Record<string, string>> = {
  "of another protocol": "SSH-2.0-OpenSSH\r\n\r\n",
  "of HTTP/2": "HTTP/2 200\r\n\r\n",
  "with a status that is no number": "HTTP/1.1 OK\r\n\r\n",
  "that switches protocols": "HTTP/1.1 101 Switching Protocols\r\n\r\n",
  "with two lengths": `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi`,
  "with a negative length": `${OK}Content-Length: -1\r\n\r\n`,
  "in another coding": `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`,
  "with a folded field": `${OK}X: 1\r\n 2\r\n\r\n`,
  "with a lone CR in a value": `${OK}X: 1\r2\r\nContent-Length: 0\r\n\r\n`,
  "with a lone LF in a value": `${OK}X: 1\n2\r\nContent-Length: 0\r\n\r\n`,
  "with a NUL in a value": `${OK}X: 1\u00002\r\nContent-Length: 0\r\n\r\n`,
  "with a field without a colon": `${OK}X\r\nContent-Length: 0\r\n\r\n`,
  "with a field without a name": `${OK}: 1\r\nContent-Length: 0\r\n\r\n`,
  "with a space before a colon": `${OK}Content-Length : 2\r\n\r\nhi`,
  "with a size that is no number": `${OK}Transfer-Encoding: chunked\r\n\r\nz\r\n`,
  "with an empty size": `${OK}Transfer-Encoding: chunked\r\n\r\n\r\n`,
  "with a size of nine digits": `${OK}Transfer-Encoding: chunked\r\n\r\n000000001\r\nh\r\n`,
  "with a signed size": `${OK}Transfer-Encoding: chunked\r\n\r\n-1\r\n`,
  "whose chunk is longer than its size": `${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n`,
  "with a head without end": `${OK}X: ${"x".repeat(70_000)}`,
  "with a line without end": `${OK}Transfer-Encoding: chunked\r\n\r\n1;${"x".repeat(5_000)}`,
};

test.each(Object.entries(BAD))("a response %s is refused", (_, text) => {
  for (const size of [text.length, 1000, 13]) {
    const { malformed, ended, whole } = read(text, size);
    expect([malformed === undefined, ended, whole]).toEqual([false, 0, false]);
  }
});

function fields(...lines: readonly string[]): Record<string, string> {
  let headers: ReadonlyMap<string, string> = new Map();
  const parser = new Parser({
    head: (head) => {
      headers = head.headers;
    },
    body: () => {},
    end: () => {},
  });
  const head = `${OK}${[...lines, "Content-Length: 0"].map((line) => `${line}\r\n`).join("")}\r\n`;
  expect(parser.feed(Buffer.from(head, "latin1"))).toBeUndefined();
  return Object.fromEntries(headers);
}

describe("a field's value", () => {
  test("loses the spaces and tabs around it, and keeps those inside and its colons", () => {
    const read = fields("A: \t 1 \t 2: 3\t ", "B:", "C: \t ", "a:4");
    expect(read).toEqual({ a: "1 \t 2: 3, 4", b: "", c: "", "content-length": "0" });
  });

  test("of 60,000 spaces costs no more than its length", () => {
    const spaces = " ".repeat(60_000);
    for (let round = 0; round < 50; round += 1) {
      expect(fields(`A: x${spaces}y`).a?.length).toBe(60_002);
      expect(fields(`A:${spaces}`).a).toBe("");
    }
  });
});
