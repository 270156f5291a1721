/** Questions to services that misbehave; test/program/ask.test.ts has those to a real one. */
import { describe, expect, test } from "bun:test";
import { type Asking, askInBackground, askLive, shortcoming } from "../../src/client/ask.ts";
import { NoAnswer } from "../../src/client/http.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";

const question = { model: "m", input: "Say hello." };

function heard() {
  const said = { ids: [] as string[], pieces: [] as string[] };
  const asking: Asking = {
    key: "k1",
    begun: (id) => {
      said.ids.push(id);
    },
    text: async (piece) => {
      said.pieces.push(piece);
    },
  };
  return { said, asking };
}

/** A service that sends these events and ends the body. */
function sending(...events: object[]) {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  const headers = { "content-type": "text/event-stream" };
  return Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(body, { headers }) });
}

const serviceOf = ({ port }: { readonly port?: number | undefined }) => ({
  url: `http://127.0.0.1:${port}`,
  apiKey: "k",
});

const CREATED = { type: "response.created", response: { id: "resp_1", status: "in_progress" } };
const DELTA = { type: "response.output_text.delta", delta: "Half of th" };

describe("a live question", () => {
  test("whose stream ends before the answer keeps what came, and says that the connection broke", async () => {
    using server = sending(CREATED, DELTA);
    const { said, asking } = heard();
    const problem = await askLive(serviceOf(server), question, asking);
    expect(problem).toBeInstanceOf(NoAnswer);
    expect(problem).toMatchObject({ exit: EXIT.unreachable, nobodyListens: false });
    expect(said).toEqual({ ids: ["resp_1"], pieces: ["Half of th"] });
  });

  test("whose stream reports an error ends with its code, without control characters", async () => {
    using server = sending(CREATED, { type: "error", code: "deadline_exceeded", message: "late\u001b[2J" });
    const problem = await askLive(serviceOf(server), question, heard().asking);
    expect(problem).toEqual(new Problem("deadline_exceeded: late [2J"));
  });
});

test("a background question ends with the error of a look that the service refuses", async () => {
  using server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ method }) =>
      method === "POST"
        ? Response.json({ id: "resp_1", status: "queued" })
        : Response.json({ error: { code: "not_found", message: "gone" } }, { status: 404 }),
  });
  const { said, asking } = heard();
  expect(await askInBackground(serviceOf(server), question, asking)).toMatchObject({ code: "not_found" });
  expect(said).toEqual({ ids: ["resp_1"], pieces: [] });
});

test("a background answer is the text of its messages, a refusal too", async () => {
  const content = [
    { type: "output_text", text: "No: " },
    { type: "refusal", refusal: "I may not." },
  ];
  const response = { id: "resp_1", status: "completed", output: [{ type: "message", content }] };
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json(response) });
  const { said, asking } = heard();
  expect(await askInBackground(serviceOf(server), question, asking)).toEqual(response);
  expect(said.pieces).toEqual(["No: I may not."]);
});

test.each([
  ["a page", "<html>"],
  ["an id that a terminal would obey", JSON.stringify({ id: "\u001b[31m", status: "completed" })],
])("%s is no response object, live or in the background", async (_, body) => {
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(body) });
  for (const ask of [askLive, askInBackground]) {
    const { said, asking } = heard();
    const problem = await ask(serviceOf(server), question, asking);
    expect((problem as Problem).message).toEndWith("is it a tendon service?");
    expect(said.ids).toEqual([]);
  }
});

test("a response that is not whole says why", () => {
  const incomplete = (reason: string) => ({ status: "incomplete", incomplete_details: { reason } });
  expect(shortcoming({ status: "completed" })).toBeUndefined();
  expect(shortcoming(incomplete("max_output_tokens"))?.message).toContain("shorter");
  expect(shortcoming(incomplete("content_filter"))?.message).toBe("the answer is incomplete (content_filter)");
  expect(shortcoming({ status: "cancelled", error: null })?.message).toBe("the response is cancelled");
  expect(shortcoming({ status: "failed", error: { code: "c", message: "m\u001b[2J" } })?.message).toBe("c: m [2J");
});
