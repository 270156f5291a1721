/** What of a provider's words may be read by a client, and what an error inside an answer means. */
import { describe, expect, test } from "bun:test";
import { providerError } from "../../src/llm/provider/fault.ts";
import { safeText } from "../../src/llm/provider/safe-text.ts";

const SECRET = "sk-provider-0123456789abcdef";

const READABLE = [
  "max_tokens must be at most 4096",
  "This model's maximum context length is 8192 tokens, and/or fewer; you asked for 9000.",
  "The token limit was exceeded, the key is missing: temperature must be from 0 to 2.5",
  "unexpected role at messages[0]",
  "status 400: bad request (2 of 3 tools)",
];

const MASKED: Readonly<Record<string, string>> = {
  "cannot open '/srv/m/q' (x)": "cannot open '[...]' (x)",
  "see (/srv/m/q), [/etc/x] or ~/m": "see ([...]), [[...]] or [...]",
  "no file C:\\models\\x here": "no file [...] here",
  "path=/srv/m is missing": "[...] is missing",
  "calling https://gpu.example.org/v1?a=b failed": "calling [...] failed",
  "localhost refused": "[...] refused",
  "localhost:8000 refused": "[...] refused",
  "host gpu-node-7 is down": "host [...] is down",
  "no answer at vllm-backend, wait": "no answer at [...], wait",
  "from gpu-node:8000 came nothing": "from [...] came nothing",
  "host=worker7 lost": "[...] lost",
  "cannot resolve 'gpu7'": "cannot resolve '[...]'",
  "mail root@box": "mail [...]",
  "10.0.0.7 and [fe80::1%eth0]:80": "[...] and [[...]",
  "llama.cpp says no": "[...] says no",
  "Bearer abcdef123456 is wrong": "Bearer [...] is wrong",
  "the key abc12345 is wrong": "the key [...] is wrong",
  "API key provided: abc12345.": "API key provided: [...].",
  "key: hush": "key: [...]",
  "the token xyz, no": "the token [...], no",
  "token=xyz no": "[...] no",
  "wrong sk-abc***xyz here": "wrong [...] here",
};

describe("a provider's sentence", () => {
  test.each(READABLE)("%j stays as it is", (text) => {
    expect(safeText(text, SECRET)).toBe(text);
  });

  test.each(Object.entries(MASKED))("%j is read without what is private", (text, safe) => {
    expect(safeText(text, SECRET)).toBe(safe);
  });

  test("is cut before it is read, so hostile megabytes cost nothing", () => {
    const size = 8 * 2 ** 20;
    for (const piece of ["a-", "a.", "a:", ":", "/", "1.", "sk-", "a", "(", ")", "'/", " ", "key ", "\0"]) {
      const safe = safeText(`No. ${piece.repeat(size / piece.length)}`, SECRET);
      expect(safe.length).toBeLessThanOrEqual(303);
      expect(safe).toStartWith("No.");
    }
  });

  test("never has a part of the key, wherever it is cut", () => {
    for (let length = 900; length < 1_010; length += 1) {
      // A long address before it is masked, so that the end of what is read is passed on.
      const safe = safeText(`http://${"x".repeat(length - 8)} ${SECRET}${SECRET} and ${"on ".repeat(100)}`, SECRET);
      expect(safe).not.toMatch(/sk|prov|0123|abc/);
      expect(safeText(`http://${"x".repeat(length - 8)} secret99${"z".repeat(30)}`, undefined)).not.toContain("s");
    }
  });

  test("of a provider without a key is read as well", () => {
    for (const none of [undefined, ""]) expect(safeText("no such model", none)).toBe("no such model");
  });
});

describe("an error inside an answer", () => {
  const kindOf = (error: unknown) => providerError(error, SECRET).kind;

  test.each([
    ...["invalid_api_key", "insufficient_quota", "internal_error", "engine_overloaded", "rate_limit_exceeded"],
    ...["server_error", "timeout_error", "model_not_found", "billing_hard_limit_reached", "503", "429"],
  ])("with the code %s is the provider's or its operator's", (code) => {
    expect(kindOf({ code, message: "No." })).toBe("unavailable");
    expect(kindOf({ code, type: "invalid_request_error" })).toBe("unavailable");
  });

  test.each([
    ...["server_error", "overloaded_error", "rate_limit_error", "RateLimitError", "timeout", "authentication_error"],
    ...["permission_error", "InternalServerError"],
  ])("with the type %s is so too", (type) => {
    expect(kindOf({ type, code: "whatever" })).toBe("unavailable");
  });

  test("of another code or type is the request's", () => {
    for (const code of ["context_length_exceeded", "invalid_prompt", "generate_failed", "400", 422])
      expect([code, kindOf({ code })]).toEqual([code, "rejected"]);
    expect(kindOf({ type: "invalid_request_error" })).toBe("rejected");
    expect(kindOf("No.")).toBe("unavailable");
    expect(kindOf({ code: { toString: 1 }, type: [], status: {} })).toBe("unavailable");
  });

  test("has in the log a short code without secrets", () => {
    expect(providerError({ code: `x ${SECRET}` }, SECRET).detail).toBe("an error inside the answer: x [...]");
    expect(providerError({ code: "a b ".repeat(2 ** 20) }, SECRET).detail.length).toBeLessThan(80);
  });
});
