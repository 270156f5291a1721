/**
 * How long do hostile bodies hold the event loop? A 1 ms timer in the server's process says how late it came. A crowd that
 * pays nothing is a part of the proof `interference`.
 */
import { LIMITS } from "../src/limits.ts";
import type { Child } from "../src/measure/child.ts";
import { SAMPLE_MODEL, SAMPLE_STATE } from "../src/measure/sample/observation.ts";
import { Problem } from "../src/std/problem.ts";
import { type Late, type MeasuredServer, onServer } from "./measured-server.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const LLM_MODEL = "llm-a-5.3:superfast";

const ROUNDS = { small: 1, full: 20 } as const;
/** Asked for. */
const LATE_MS_MAX = 20;

interface Hostile {
  readonly name: string;
  readonly path: string;
  readonly body: string;
}

const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
const COMPLETE = "/v1/robot/runs/arm/run/complete";
const UPLOAD = "/v1/robot/runs/arm/run/uploads/file";
/** How the address of an image begins. */
const IMAGE = "data:image/";

/** Texts made of these cost a parser the most: each of them is one or two units. */
const PIECES = {
  "escaped backslashes": "\\\\",
  "escaped pairs": "\\ud83d\\ude00",
  "plain text": "a",
  "wide text": "€",
  blanks: "\\n ",
} as const;

/** For each route a body whose fields reach each of its readers. */
function samples(): readonly { readonly path: string; readonly most: number; readonly body: object }[] {
  const content = [
    { type: "text", text: "fold" },
    { type: "image_url", image_url: { url: `${IMAGE}jpeg;base64,/9j/` } },
  ];
  const parts = [
    { type: "input_text", text: "hello" },
    { type: "input_image", image_url: `${IMAGE}png;base64,AAAA` },
  ];
  const output = { type: "function_call_output", call_id: "c", output: "done" };
  const sha256 = "0".repeat(64);
  return [
    {
      ...{ path: CHAT, most: LIMITS.robotBodyBytesMax },
      body: {
        ...{ model: SAMPLE_MODEL, messages: [{ role: "user", content }], robot_state: SAMPLE_STATE },
        ...{ session_id: "s", observation_id: "o", unknown: { a: ["x"] } },
      },
    },
    {
      ...{ path: RESPONSES, most: LIMITS.llmBodyBytesMax },
      body: {
        ...{ model: LLM_MODEL, input: [{ role: "user", content: parts }, output], instructions: "i", user: "u" },
        tools: [{ type: "function", name: "f", description: "d", parameters: { a: ["x"] } }],
        text: { format: { type: "json_schema", name: "n", schema: { a: 1 } } },
        metadata: { a: "x" },
      },
    },
    {
      ...{ path: COMPLETE, most: LIMITS.runJsonBytesMax },
      body: { files: [{ path: "a", size: 1, sha256 }], metadata: { a: "x" } },
    },
    { path: UPLOAD, most: LIMITS.runJsonBytesMax, body: { size: 1, sha256 } },
  ];
}

/** Copies of the value, each with `TEXT` in place of one of its parts, after the start of an image's address, or as one more key. */
function places(value: unknown): unknown[] {
  const isImage = typeof value === "string" && value.startsWith(IMAGE);
  if (isImage) return ["TEXT", `${IMAGE}TEXT`, `${value}TEXT`];
  if (typeof value !== "object" || value === null) return ["TEXT"];
  // A list's numbers are all read alike.
  const isLike = (part: unknown, at: string) => typeof part === "number" && Number(at) > 0;
  const inside = Object.entries(value).flatMap(([at, part]) =>
    isLike(part, at) ? [] : places(part).map((other) => Object.assign(structuredClone(value), { [at]: other })),
  );
  return ["TEXT", ...inside, ...(Array.isArray(value) ? [] : [{ ...value, TEXT: 1 }])];
}

function bodies(): Hostile[] {
  const most = LIMITS.robotBodyBytesMax;
  const many = (one: (at: number) => string, bytes: number) => {
    const count = LIMITS.jsonValuesMax - 10;
    const room = Math.floor(bytes / count) - one(0).length - 6;
    const piece = "\\\\".repeat(Math.floor(room / 2));
    return Array.from({ length: count }, (_, at) => one(at).replace("TEXT", piece)).join(",");
  };
  const strings = (bytes: number) => `{"a":[${many(() => '"TEXT"', bytes)}]}`;
  const keys = (bytes: number) => `{${many((at) => `"${at}TEXT":1`, bytes)}}`;
  const schema = keys(LIMITS.llmBodyBytesMax - 200);
  const metadata = keys(LIMITS.runJsonBytesMax - 200);
  const tool = `{"type":"function","name":"f","parameters":${schema}}`;
  const shapes = [
    { name: "small arrays", path: CHAT, body: `[${"[],".repeat(Math.floor((most - 4) / 3))}[]]` },
    { name: "200,000 levels of arrays", path: CHAT, body: "[".repeat(200_000) },
    { name: "200,000 levels of objects", path: CHAT, body: '{"a":'.repeat(200_000) },
    { name: "small objects", path: CHAT, body: `[${'{"a":1},'.repeat(Math.floor((most - 10) / 8))}1]` },
    { name: "quotes", path: CHAT, body: '"'.repeat(most) },
    { name: "a string without an end", path: CHAT, body: `"${"\\\\".repeat(Math.floor(most / 2) - 1)}` },
    { name: "20,000 strings", path: CHAT, body: strings(most) },
    { name: "20,000 keys", path: CHAT, body: keys(most) },
    { name: "one number", path: CHAT, body: `{"a":${"7".repeat(most - 10)}}` },
    { name: "20,000 strings", path: RESPONSES, body: strings(LIMITS.llmBodyBytesMax) },
    {
      name: "20,000 keys of a schema",
      path: RESPONSES,
      body: `{"model":"${LLM_MODEL}","input":"a","tools":[${tool}]}`,
    },
    {
      name: "20,000 keys of metadata",
      path: COMPLETE,
      body: `{"files":[{"path":"a","size":1}],"metadata":${metadata}}`,
    },
  ];
  const texts = samples().flatMap(({ path, most, body }) =>
    places(body).flatMap((place) => {
      const [before = "", after = ""] = JSON.stringify(place).split("TEXT");
      const room = most - Buffer.byteLength(before + after);
      return Object.entries(PIECES).map(([name, piece]) => ({
        ...{ name: `${name} in ${before.slice(-24)}TEXT${after.slice(0, 8)}`, path },
        body: before + piece.repeat(Math.floor(room / Buffer.byteLength(piece))) + after,
      }));
    }),
  );
  return [...shapes, ...texts];
}

export const hostile: Proof = {
  name: "hostile",
  question: "How long do hostile bodies hold the event loop?",
  async run(size) {
    const rows = await onServer("echo", (server) => lateness(server, ROUNDS[size]));
    return rows instanceof Problem ? rows : judged(rows);
  },
};

async function lateness(server: MeasuredServer, rounds: number): Promise<Figure[] | Problem> {
  const worst = new Map<string, Late & { name: string }>();
  for (const hostile of bodies()) {
    const late = await worstOf(server, hostile, rounds);
    if (late instanceof Problem) return late;
    if (late.cpuMs >= (worst.get(hostile.path)?.cpuMs ?? 0)) worst.set(hostile.path, { ...late, name: hostile.name });
  }
  await Bun.sleep(500);
  await server.late();
  await Bun.sleep(rounds * 40);
  const idle = await server.late();
  if (idle instanceof Problem) return idle;
  const rows = [...worst].flatMap(([path, { cpuMs, wallMs, name }]) => [
    {
      measure: `${path}: event loop held, by its thread's CPU time; ${rounds} of each body, the worst is ${name}`,
      value: cpuMs,
      unit: "ms",
      limit: LATE_MS_MAX,
    },
    { measure: `${path}: the same by wall clock`, value: wallMs, unit: "ms" },
  ]);
  return [...rows, { measure: "no request at all, by wall clock", value: idle.wallMs, unit: "ms" }];
}

/** The longest that the loop is held by the body. The first of them is for the compiler and does not count. */
async function worstOf(server: MeasuredServer, { path, body }: Hostile, rounds: number): Promise<Late | Problem> {
  const bytes = Buffer.from(body);
  let worst: Late = { wallMs: 0, cpuMs: 0 };
  for (let round = -1; round < rounds; round += 1) {
    const refused = await post(server.child, path, bytes);
    if (refused !== undefined) return refused;
    const late = await server.late();
    if (late instanceof Problem) return late;
    if (round >= 0 && late.cpuMs > worst.cpuMs) worst = late;
  }
  return worst;
}

/** A service that fails or cannot read bodies measures nothing. */
async function post(child: Child, path: string, body: Uint8Array): Promise<undefined | Problem> {
  const { url, apiKey } = child.service;
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}` },
    body,
  });
  const text = await response.text();
  const isRead = response.status < 500 || text.includes("no provider is configured");
  if (isRead && response.status !== 429) return undefined;
  return new Problem(`a hostile body got ${response.status}: ${text.slice(0, 200)}`);
}
