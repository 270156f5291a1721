/** The published document and the server say the same. */
import { beforeAll, describe, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import sharp from "sharp";
import { requestBody } from "../../../src/client/request.ts";
import { prose } from "../../../src/http/document/markdown.ts";
import { LIMITS } from "../../../src/limits.ts";
import { sampleFrames } from "../../../src/measure/sample/drawing.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../../../src/measure/sample/observation.ts";
import { EXAMPLE, EXAMPLE_FRAMES } from "../../../src/robot/docs/example.ts";
import { ROBOT } from "../../../src/robot/errors.ts";
import { RUNS } from "../../../src/runs/errors.ts";
import { EVERY } from "../../../src/std/every-route.ts";
import { Problem } from "../../../src/std/problem.ts";
import { RandomStream } from "../../../src/std/random.ts";
import { html } from "../../../src/web/markup.ts";
import {
  CARTESIAN,
  cartesianState,
  imagePart,
  imageUrl,
  jpeg,
  MODEL,
  observation,
  STATEFUL,
  stage,
  textPart,
  VECTOR,
  vectorObservation,
  vectorState,
  withContent,
} from "../../robot/stage.ts";
import { mutated } from "./mutate.ts";
import { CHAT_BODY, type Published, pointer, published } from "./published.ts";

const CHAT = "POST /v1/chat/completions";

let api: Published;
beforeAll(async () => {
  api = await published(await stage());
});

function bodyFaults(body: unknown): string[] {
  return api.faults(`${CHAT_BODY}/schema`, JSON.parse(JSON.stringify(body)));
}

describe("the document", () => {
  test("is valid OpenAPI 3.1 by the official schema, and small", async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(api.document)));
    expect([valid, errors]).toEqual([true, undefined]);
    expect(api.document.openapi).toMatch(/^3\.1\./);
    const operations = Object.values(api.document.paths).flatMap((methods) => Object.keys(methods)).length;
    expect(JSON.stringify(api.document).length / operations).toBeLessThan(6_300);
  });

  test("every reference resolves, and every schema compiles as JSON Schema 2020-12", () => {
    const refs = [...JSON.stringify(api.document).matchAll(/"\$ref":"#([^"]+)"/g)].map((match) => match[1] ?? "");
    expect(refs.length).toBeGreaterThan(20);
    for (const ref of new Set(refs)) {
      const keys = ref.slice(1).split("/");
      const found = keys.reduce((at: unknown, key) => (at as Record<string, unknown> | undefined)?.[key], api.document);
      expect([ref, typeof found]).toEqual([ref, "object"]);
    }
    for (const name of Object.keys(api.document.components.schemas)) {
      expect(api.faults(pointer("components", "schemas", name), 5)).not.toEqual([]);
    }
  });

  test("has every route of the app but the pages for people, and each answers other than 404", async () => {
    const at = await stage();
    const pages = /^\/(sign-in|sign-out|sign-up|welcome|device|account|assets)\b/;
    const routes = at.app.routes
      .filter(({ path }) => !pages.test(path))
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}").replace(/\*$/, "{path}")}`);
    const documented = Object.entries(api.document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(documented.toSorted()).toEqual(routes.toSorted());
    for (const route of documented) {
      const [method = "", path = ""] = route.split(" ");
      const { status } = await at.send(path.replace(/\{\w+\}/g, "x"), { method });
      expect([route, status]).not.toEqual([route, 404]);
    }
  });

  test("documents every code of the table with each of its statuses, and no other", () => {
    const table = [EVERY, ROBOT]
      .flatMap((rows) => Object.values(rows))
      .filter(({ http }) => http !== undefined)
      .map((row) => ({ code: row.wire, status: row.status }));
    const chat = api.document.paths["/v1/chat/completions"]?.post?.responses ?? {};
    const found = Object.entries(chat).flatMap(([status, { description }]) =>
      [...description.matchAll(/^- `(\w+)`: \S/gm)].map((match) => ({ code: match[1] ?? "", status: Number(status) })),
    );
    const name = (row: { code: string; status: number }) => `${row.status} ${row.code}`;
    expect(
      found
        .filter(({ status }) => status !== 200)
        .map(name)
        .toSorted(),
    ).toEqual(
      table
        .filter(({ code }) => code !== "not_found")
        .map(name)
        .toSorted(),
    );
  });

  test("documents every code of run storage with its status on the routes of run storage", () => {
    const found = new Set<string>();
    for (const [path, methods] of Object.entries(api.document.paths)) {
      if (!path.startsWith("/v1/robot/runs")) continue;
      for (const { responses } of Object.values(methods)) {
        for (const [status, { description }] of Object.entries(responses))
          for (const [, code] of description.matchAll(/^- `(\w+)`: \S/gm)) found.add(`${status} ${code}`);
      }
    }
    const { not_found: _, payment_required, insufficient_credit, spend_limit_exceeded, ...every } = EVERY;
    const paid = [
      payment_required,
      insufficient_credit,
      spend_limit_exceeded,
      every.billing_unavailable,
      every.metering_unavailable,
    ];
    const rows = [...Object.values(RUNS), ...Object.values(every).filter((row) => !paid.includes(row))];
    expect([...found].toSorted()).toEqual(
      rows
        .filter(({ http }) => http !== undefined)
        .map(({ wire, status }) => `${status} ${wire}`)
        .toSorted(),
    );
  });

  test("needs no key, and tells nothing about this machine", async () => {
    const { send } = await stage();
    for (const path of ["/openapi.json", "/docs", "/docs/episodes", "/docs/robot-runs"]) {
      const response = await send(path);
      expect([path, response.status, response.headers.get("x-request-id")]).toEqual([
        path,
        200,
        expect.stringMatching(/^req_/),
      ]);
      expect(await response.text()).not.toMatch(/\/(home|root|tmp|usr)\/|localhost|127\.0\.0\.1|tdn_/);
    }
  });
});

describe("the example", () => {
  test("is answered with a chunk, and the answer is as documented", async () => {
    const { chat, engine } = await stage();
    const example = api.document.components.examples.observation?.value;
    const response = await chat(example);
    expect([response.status, engine.observations.length]).toEqual([200, 1]);
    expect(await api.answerFaults(CHAT, response)).toEqual([]);
    const body = (await response.json()) as { choices: [{ message: { content: string } }] };
    const chunk = JSON.parse(body.choices[0].message.content);
    expect(api.faults("/components/schemas/ActionChunk", chunk)).toEqual([]);
  });

  test("is what sample writes: the same fields and values, its frames those of the drawn scene", async () => {
    const frames = EXAMPLE_FRAMES.map((url) => Uint8Array.fromBase64(url.slice(url.indexOf(",") + 1)));
    const request = { model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, frames, state: SAMPLE_STATE };
    expect(requestBody(request)).toEqual(EXAMPLE);
    const drawn = await sampleFrames(0);
    if (drawn instanceof Problem) throw new Error(drawn.message);
    for (const [index, frame] of frames.entries()) {
      const { data, info } = await sharp(frame).raw().toBuffer({ resolveWithObject: true });
      expect([info.width, info.height, info.channels]).toEqual([320, 180, 3]);
      const whole = await sharp(drawn[index]).resize(320, 180).raw().toBuffer();
      let difference = 0;
      for (const [at, value] of data.entries()) difference += Math.abs(value - (whole[at] ?? 0));
      // In levels of 255: what a JPEG of this quality loses. Another seed's scene differs by ten and more.
      expect(difference / data.length).toBeLessThan(5);
    }
  }, 60_000);

  test("of a question is answered with a description", async () => {
    const { chat } = await stage();
    const media = api.document.paths["/v1/chat/completions"]?.post?.requestBody?.content["application/json"];
    const question = media?.examples?.question as { value: unknown };
    const response = await chat(question.value);
    expect([response.status, await api.answerFaults(CHAT, response)]).toEqual([200, []]);
  });

  test("of a stream is as its schema says, and so is a failure after the start", () => {
    const content = api.document.paths["/v1/chat/completions"]?.post?.responses["200"]?.content?.["text/event-stream"];
    const events = String(content?.example)
      .split("\n\n")
      .filter((line) => line.startsWith("data: {"))
      .map((line) => JSON.parse(line.slice(6)));
    const [first] = events;
    const choices = [{ index: 0, delta: {}, finish_reason: "error" }];
    events.push({ ...first, choices, error: { message: "m", type: "api_error", code: "model_failure" } });
    expect(events.length).toBe(3);
    for (const event of events) expect(api.faults("/components/schemas/ChatCompletionChunk", event)).toEqual([]);
    expect(api.faults("/components/schemas/ChatCompletionChunk", { ...first, choices: [] })).not.toEqual([]);
  });
});

describe("bodies", () => {
  test("limits are inclusive, null equals absence, unknown properties are accepted", async () => {
    const { chat } = await stage();
    const free = {
      ...{ stream: null, handoff: null, seed: null, session_id: null, action_horizon: null },
      ...{ num_inference_steps: null, expected_step: null, observation_id: null, deadline_ms: null },
    };
    const state = { joint_position: Array(12).fill(-3.402823e38), gripper_position: [0, 1], extra: 1 };
    const cartesian = { ...cartesianState, joint_position: null };
    const bodies = [
      observation({ ...free, temperature: 0.5, nested: { a: [1] } }),
      observation({ session_id: "😀".repeat(128), seed: Number.MAX_SAFE_INTEGER, handoff: false }),
      observation({ observation_id: "a".repeat(128), action_horizon: 30, num_inference_steps: 4, expected_step: 0 }),
      observation({ deadline_ms: 240_000 }),
      observation({ deadline_ms: 1 }),
      observation({ robot_state: state }),
      vectorObservation({ robot_state: { ...vectorState, joint_position: 1 }, action_horizon: 50 }),
      observation({ robot_state: cartesian, model: CARTESIAN, session_id: "räume 7" }),
      withContent([textPart(), imagePart(imageUrl(jpeg(262_144))), imagePart(), imagePart()]),
      withContent([imagePart(), textPart(" "), imagePart(), imagePart(), textPart("x")], { action_horizon: 1 }),
      withContent("what are you?", { robot_state: "wrong", action_horizon: "wrong", session_id: "s" }),
      withContent([], { model: STATEFUL }),
    ];
    for (const body of bodies) {
      const start = JSON.stringify(body).slice(0, 80);
      expect([start, (await chat(body)).status, bodyFaults(body)]).toEqual([start, 200, []]);
    }
  });

  test("of the last user message alone are read", async () => {
    const { chat } = await stage();
    const messages = [
      { role: "user", content: 5 },
      { role: "user", content: [textPart(), imagePart(), imagePart(), imagePart()] },
      { role: "assistant", content: [{ type: "nonsense" }] },
      null,
    ];
    expect([(await chat(observation({ messages }))).status, bodyFaults(observation({ messages }))]).toEqual([200, []]);
  });

  /** Rules that depend on the model, on the bytes of a picture or on what the service offers: no schema of all models has them. */
  function beyondSchema(code: string, body: Partial<typeof EXAMPLE> & { action_horizon?: unknown }): boolean {
    const horizon = Number(body.action_horizon);
    if (code === "action_horizon_out_of_range") return horizon >= 1 && horizon <= LIMITS.chunkRowsMax;
    if (code === "invalid_image") return body.model === CARTESIAN;
    // How many values a vector has is the model's.
    if (code === "state_shape_mismatch") return body.model === VECTOR;
    const others = ["model_not_found", "image_count_mismatch", "handoff_unavailable"];
    // No JSON Schema can say `the last user message`: with several, the schema is content with any.
    return others.includes(code) || (Array.isArray(body.messages) && body.messages.length > 1);
  }

  const FIELDS = [
    ...["session_id", "observation_id", "expected_step", "seed", "handoff", "action_horizon", "num_inference_steps"],
    ...["stream", "robot_state", "messages", "model", "deadline_ms", "extra"],
  ];

  test("schema and server accept and refuse the same 1,500 mutations of the examples", async () => {
    const question = withContent("what are you?", { session_id: "s" });
    const cartesian = { ...EXAMPLE, model: CARTESIAN, robot_state: cartesianState, session_id: "a" };
    const bases = [
      EXAMPLE,
      {
        ...EXAMPLE,
        seed: 7,
        stream: false,
        action_horizon: 30,
        num_inference_steps: 4,
        expected_step: 0,
        deadline_ms: 33.5,
      },
      cartesian,
      { ...vectorObservation(), session_id: "a", action_horizon: 50 },
      question,
    ];
    const seen = { answered: 0, refused: 0 };
    for (let run = 0; run < 1500; run += 1) {
      const body = mutated(bases[run % bases.length], FIELDS, new RandomStream(`openapi/${run}`)) as object;
      const { chat, service } = await stage();
      const response = await chat(body);
      const code = /"code":"(\w+)"/.exec(await response.clone().text())?.[1] ?? "";
      const faults = bodyFaults(body);
      const about = `run ${run}: ${response.status} ${code}`;
      expect([about, await api.answerFaults(CHAT, response)]).toEqual([about, []]);
      expect(service.http.ingress.bytes).toBe(0);
      if (response.status === 200) {
        seen.answered += 1;
        expect([about, faults]).toEqual([about, []]);
      } else if (response.status === 400) {
        seen.refused += 1;
        if (!beyondSchema(code, body)) expect([about, faults]).not.toEqual([about, []]);
      }
    }
    expect(seen.answered).toBeGreaterThan(200);
    expect(seen.refused).toBeGreaterThan(400);
  }, 120_000);

  test("values at the edge are accepted and refused alike: base64, blank texts, ids, numbers of a state", async () => {
    const base64 = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_= \n"];
    const tails = [
      ...["", "A", "AA", "AAA", "AAAA", "=", "==", "A===", "AA=A", "AA==AAAA", "AAA=A", "AAAAAAA=", "A A=", "AAAA\n"],
      ...base64.flatMap((last) => [`A${last}==`, `AA${last}=`]),
    ];
    const urls = [...tails.map((tail) => `data:image/jpeg;base64,/9j/${tail}`), "data:image/jpeg;base64,/9k/", ""];
    const edges = [
      "a",
      " ",
      "\t",
      "\u0000",
      "\ud800",
      "\udc00a",
      "\u00a0",
      "\u200b",
      "\u2028",
      "\ufeff",
      "\ue000",
      "\u0378",
    ];
    const ids = [...edges, ...edges.flatMap((edge) => [`a${edge}a`, `${edge}a`, `a${edge}`]), "", "A-Z.a:z_9"];
    const numbers = [0, -0, 1, -1e-9, 1 + 1e-9, 3.4028235e38, 3.4028235677973366e38, 3.4028235677973362e38, -3.5e38];
    const joints = (value: number) => ({ joint_position: Array(12).fill(value), gripper_position: [0, 1] });
    const bodies = [
      ...urls.map((url) => withContent([textPart(), imagePart(url), imagePart(), imagePart()])),
      ...ids.map((text) => withContent([textPart(text), imagePart(), imagePart(), imagePart()])),
      ...ids.flatMap((id) => [observation({ session_id: id }), observation({ observation_id: id })]),
      ...numbers.map((value) => observation({ robot_state: joints(value) })),
      ...numbers.map((value) => observation({ robot_state: { ...joints(0), gripper_position: [0.5, value] } })),
      ...numbers.map((value) => vectorObservation({ robot_state: { state: vectorState.state.with(2, value) } })),
    ];
    let accepted = 0;
    for (const body of bodies) {
      const { status } = await (await stage()).chat(body);
      const faults = bodyFaults(body);
      const about = JSON.stringify(body);
      expect([about, status, faults.length > 0]).toEqual([about, faults.length > 0 ? 400 : 200, status !== 200]);
      if (status === 200) accepted += 1;
    }
    expect([accepted > 80, bodies.length - accepted > 150]).toEqual([true, true]);
  });
});

test("answers other than chunks are as documented: no key, dead store, not ready, ready, alive", async () => {
  const at = await stage();
  const check = async (operation: string, response: Response, status: number) => {
    const found = [operation, response.status, await api.answerFaults(operation, response)];
    expect(found).toEqual([operation, status, []]);
  };
  await check(CHAT, await at.send("/v1/chat/completions", { method: "POST", body: "{}" }), 401);
  await check(CHAT, await at.chat("no json"), 400);
  await check(CHAT, await at.chat(observation({ expected_step: 3 })), 409);
  await check(CHAT, await at.chat(observation({ session_id: "s", expected_step: 3 })), 410);
  await check(CHAT, await at.chat(withContent([imagePart(imageUrl(jpeg(300_000)))])), 413);
  await check("GET /healthz", await at.send("/healthz"), 200);
  await check("GET /readyz", await at.send("/readyz"), 200);
  at.store.down = true;
  await check(CHAT, await at.chat(observation()), 503);
  await check("GET /readyz", await at.send("/readyz"), 503);
  await at.service.core.lifecycle.drain();
  await check("GET /readyz", await at.send("/readyz"), 503);
});

describe("the page", () => {
  test("is whole: every operation, field, code and header, and every link leads somewhere", async () => {
    const text = await (await (await stage()).send("/docs")).text();
    const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]));
    const links = [...text.matchAll(/ href="([^"]+)"/g)].map((match) => match[1] ?? "");
    const pages = Object.keys(api.document.paths).filter((path) => path.startsWith("/docs/"));
    expect(links.filter((link) => !ids.has(link.slice(1)))).toEqual([
      "openapi.json",
      ...pages.map((path) => path.slice(1)),
    ]);
    const words = [
      ...Object.keys(api.document.paths),
      ...Object.keys(api.document.components.schemas),
      ...Object.keys(api.document.components.headers),
      ...Object.values(ROBOT).flatMap((row) => (row.http === undefined ? [] : [row.wire])),
      ...["robot_state", "cartesian_position", "next_frames_per_camera", "exactly 12", MODEL],
    ];
    expect(words.filter((word) => !text.includes(word))).toEqual([]);
    expect([...text.matchAll(/<img src="([^"]{10})/g)].map((match) => match[1])).toEqual(Array(3).fill("data:image"));
  });

  test("escapes what it is given", () => {
    expect(html`<a title="${`"<'&`}">${[html`<b>${1}</b>`, html`${undefined}`]}</a>`.text).toBe(
      '<a title="&quot;&lt;&#x27;&amp;"><b>1</b></a>',
    );
    expect(prose("a **b** `**<c>`\nd:\n- one\n- `two`\n\ne").text).toBe(
      "<p>a <strong>b</strong> <code>**&lt;c&gt;</code>\nd:</p>\n<ul>\n<li>one</li>\n<li><code>two</code></li>\n</ul>\n<p>e</p>",
    );
  });
});
