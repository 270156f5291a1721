/** An error object inside a provider's answer: whose fault it is. */
import { describe, expect, test } from "bun:test";
import { providerError } from "../../src/llm/provider/fault.ts";

describe("an error inside an answer", () => {
  const kindOf = (error: unknown) => providerError(error).kind;

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
});
