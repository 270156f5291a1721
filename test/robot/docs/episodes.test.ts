/** `/docs/episodes` says what the specification and the service say. */
import { beforeAll, describe, expect, test } from "bun:test";
import { markdown } from "../../../src/http/document/markdown.ts";
import type { JsonObject } from "../../../src/http/json.ts";
import { LIMITS } from "../../../src/limits.ts";
import source from "../../../src/robot/docs/episodes.md" with { type: "text" };
import { FrameGroup } from "../../../src/robot/socket/frames.ts";
import { readObservation, readOpening } from "../../../src/robot/socket/messages.ts";
import { Failure } from "../../../src/std/failure.ts";
import { html } from "../../../src/web/markup.ts";
import { blocksOf } from "../../docs/blocks.ts";
import { type Heard, Peer, peer } from "../socket/peer.ts";
import { jointState, MODEL, STATEFUL, stage } from "../stage.ts";

let text: string;
beforeAll(async () => {
  text = await (await (await stage()).send("/docs/episodes")).text();
});

/** The client of the page. */
function shown(language: string): string {
  return blocksOf(source).find((block) => block.language === language)?.code ?? "";
}

describe("the page", () => {
  test("shows both clients, of 45 lines at most", () => {
    const sizes = ["python", "ts"].map((language) => shown(language).trimEnd().split("\n").length);
    expect(sizes.filter((size) => size > 20 && size <= 45)).toEqual(sizes);
  });
});

describe("messages", () => {
  const named = (word: string) => text.includes(`<code>${word}</code>`);

  test("every field of every message that the service sends stands on the page", async () => {
    const seen: Heard[] = [];
    for (const fields of [{}, { actions_format: "f32" }, { model: STATEFUL }]) {
      const one = await peer();
      await one.open({ session_id: "s", ...fields });
      one.frames();
      await one.observe({ observation_id: "o", expected_step: 0 });
      one.episode.dropped();
      const again = new Peer(one.at);
      await again.open({ session_id: "s", ...fields });
      again.frames();
      await again.observe({ observation_id: "o", expected_step: 0 });
      await again.observe({ observation_id: "p" });
      await again.say({ type: "session.close" });
      seen.push(...[...one.heard, ...again.heard].filter((message) => typeof message !== "number"));
    }
    const idle = await peer();
    await idle.open();
    idle.episode.drain();
    seen.push(idle.last);
    const types = new Set(seen.map(({ type }) => type));
    expect([...types].toSorted()).toEqual(["action_chunk", "error", "session.closed", "session.opened"]);
    const fields = new Set(seen.flatMap((message) => Object.keys(message)).concat("cache_reset", "clamped"));
    expect(fields.has("replayed") && fields.has("rows")).toBe(true);
    expect([...fields].filter((field) => !named(field))).toEqual([]);
    const reasons = new Set(seen.flatMap(({ type, reason }) => (type === "session.closed" ? [String(reason)] : [])));
    expect(reasons.size).toBe(2);
    expect([...reasons].filter((reason) => !named(reason))).toEqual([]);
  });

  test("every field that the service reads of a message stands on the page, under that message", async () => {
    const { catalog } = (await stage()).service.robot;
    const opened = fieldsRead({ model: MODEL, instruction: "fold the towel" }, (body) => readOpening(body, catalog));
    const session = { ...opened.result, sessionId: "s" };
    const frames = Object.create(FrameGroup.prototype) as FrameGroup;
    const observed = fieldsRead({ robot_state: jointState }, (body) => readObservation(body, session, frames));
    for (const [type, { read }] of Object.entries({ "session.open": opened, observation: observed })) {
      const part = text.slice(text.indexOf(`>${type}</h3>`)).split("<h3")[0] ?? "";
      const shown = [...part.matchAll(/<tr>\s*<td><code>(\w+)<\/code>/g)].map(([, field]) => field);
      expect([type, ...shown.toSorted()]).toEqual([type, ...[...read].toSorted()]);
    }
  });
});

/** What a reader of messages takes of a good one. */
function fieldsRead<T>(body: JsonObject, reader: (body: JsonObject) => T | Failure) {
  const read = new Set<string>();
  const get = (of: JsonObject, field: string) => {
    read.add(field);
    return of[field];
  };
  const result = reader(new Proxy(body, { get } as ProxyHandler<JsonObject>));
  if (result instanceof Failure) throw new Error(result.message);
  return { read, result };
}

/** The specification's table, and what its text and the contract add: by close code, the codes. */
const SPECIFIED: Readonly<Record<string, readonly string[]>> = {
  "–": [
    ...["invalid_json", "invalid_body", "type_missing", "unknown_type", "message_too_large", "session_open"],
    ...["session_missing", "instruction_missing", "handoff_unavailable", "invalid_parameter", "invalid_frame"],
    ...["invalid_camera", "image_too_large", "unsupported_image_format", "image_count_mismatch", "state_missing"],
    ...["state_shape_mismatch", "action_horizon_invalid", "action_horizon_out_of_range"],
    ...["num_inference_steps_invalid", "num_inference_steps_out_of_range", "invalid_image"],
    ...["invalid_session_id", "instruction_changed", "invalid_expected_step", "session_step_conflict"],
    ...["instruction_too_long"],
  ],
  1008: [
    ...["model_missing", "model_not_found", "session_busy", "no_replica_free", "session_expired"],
    ...["spend_limit_exceeded", "insufficient_credit", "metering_unavailable", "invalid_observation_id"],
    ...["idempotency_conflict", "observation_outcome_unknown", "too_many_observations", "message_too_large"],
    ...["payment_required", "billing_unavailable", "invalid_api_key", "auth_unavailable"],
    ...["rate_limited"],
  ],
  1011: ["model_failure", "engine_protocol_error", "engine_unavailable", "internal_error"],
};

test("the table of errors has every code with its closing and its close code, and no other", () => {
  const table = /<table class="errors">[\s\S]*?<\/table>/.exec(text)?.[0] ?? "";
  const row =
    /<tr><td><code>(\w+)<\/code><\/td><td><span class="what">closing <\/span>(\w+)<\/td><td[^>]*>(?:<span class="what">close <\/span>)?(\S+)<\/td><td><p>\S.+<\/p>/g;
  const found = [...table.matchAll(row)].map(([, code, closing, close]) => `${code} ${closing} ${close}`);
  expect(found.length).toBe(table.split("<tr>").length - 2);
  const specified = Object.entries(SPECIFIED).flatMap(([close, codes]) =>
    codes.map((code) => `${code} ${close !== "–"} ${close}`),
  );
  expect([...new Set(found)].toSorted()).toEqual(specified.toSorted());
});

test("both clients take the same closing errors as passing: those after which the page says to connect again", async () => {
  const passing = [
    ...[
      "session_busy",
      "no_replica_free",
      "metering_unavailable",
      "observation_outcome_unknown",
      "billing_unavailable",
    ],
    ...["auth_unavailable", "model_failure", "engine_protocol_error", "engine_unavailable", "internal_error"],
  ];
  const closing = Object.entries(SPECIFIED).flatMap(([close, codes]) => (close === "–" ? [] : codes));
  const python = /^PASSING = r"(.+)"$/m.exec(shown("python"))?.[1];
  const typescript = /^const passing = \/(.+)\/;$/m.exec(shown("ts"))?.[1];
  for (const pattern of [`^(?:${python})$`, `${typescript}`])
    expect(closing.filter((code) => new RegExp(pattern).test(code)).toSorted()).toEqual(passing.toSorted());
});

test("the table of limits has those of the specification, and what the text repeats is the same", () => {
  const table = text.slice(text.indexOf('<h2 id="limits">'), text.indexOf('<h2 id="client-in-python">'));
  const rows = [...table.matchAll(/<tr>\s*<td>(.*?)<\/td>\s*<td>(.*?)<\/td>/g)].map(([, what, value]) => ({
    what: what ?? "",
    value: value ?? "",
  }));
  const value = (start: string) => rows.find(({ what }) => what.startsWith(start))?.value;
  expect([value("Characters of a text"), value("Bytes of one JPEG"), value("Edge")]).toEqual([
    "65,536",
    "262,144",
    "4,096",
  ]);
  expect([value("Observations that wait"), value("Bytes of messages"), value("Messages whose")]).toEqual([
    "8",
    "16 MiB",
    "128",
  ]);
  expect([value("A session without"), value("<code>num_inference")]).toEqual(["60 s", "1 to 4"]);
  expect(text).toContain(`are answered, within ${value("Answers that the service owes")}; then come`);
  const socket = Object.keys(LIMITS).filter((name) => name.startsWith("socket"));
  // The time that a close may take concerns no client; all others have a row.
  expect(socket.length - 1).toBe(10);
  expect(text).toContain(`leaves its session for ${value("A session without")}`);
});

test("Markdown is escaped, its HTML is refused, and a part stands where its name does", () => {
  const part = html`<hr>`;
  const { content, headings } = markdown("## A `b` & c\n\na < b `<i>`\n\n<!-- part -->\n", { part });
  expect(content.text).toBe(
    '<h2 id="a-b-c">A <code>b</code> &amp; c</h2>\n<p>a &lt; b <code>&lt;i&gt;</code></p>\n<hr>',
  );
  expect(headings).toEqual([{ id: "a-b-c", text: "A `b` & c" }]);
  for (const raw of ["<b>x</b>", "a <i>b</i>", "<script>x</script>", "<!-- other -->"])
    expect(() => markdown(raw, { part })).toThrow("assertion failed");
});
