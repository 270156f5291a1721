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

/** A text of at most `bytes` that costs a parser the most: each of these is one or two units. */
const PIECES = {
  "escaped backslashes": "\\\\",
  "escaped pairs": "\\ud83d\\ude00",
  "plain text": "a",
  "wide text": "€",
  blanks: "\\n ",
} as const;

function fill(body: string, piece: string, bytesMax: number): string {
  const room = bytesMax - Buffer.byteLength(body);
  return body.replace("TEXT", piece.repeat(Math.floor(room / Buffer.byteLength(piece))));
}

/** Bodies with `TEXT` where a text may stand. */
function placesOf(
  most: number,
): readonly { readonly path: string; readonly most: number; readonly places: readonly string[] }[] {
  const state = JSON.stringify(SAMPLE_STATE);
  const chat = (content: string, rest: string) =>
    `{"model":"${SAMPLE_MODEL}","messages":[{"role":"user","content":${content}}],"robot_state":${state}${rest}}`;
  const url = "data:image/jpeg;base64,/9j/";
  const image = `{"type":"image_url","image_url":{"url":"${url}"}}`;
  const text = '{"type":"text","text":"fold"}';
  const ask = (rest: string) => `{"model":"${LLM_MODEL}","input":"hello"${rest}}`;
  return [
    {
      path: CHAT,
      most,
      places: [
        chat(`[{"type":"text","text":"TEXT"},${image}]`, ""),
        chat('"TEXT"', ""),
        chat(`[${text},{"type":"image_url","image_url":{"url":"TEXT"}}]`, ""),
        chat(`[${text},{"type":"image_url","image_url":{"url":"data:image/TEXT"}}]`, ""),
        chat(`[${text},{"type":"image_url","image_url":{"url":"${url}TEXT"}}]`, ""),
        chat(`[${text},{"type":"TEXT"}]`, ""),
        chat(`[${text},${image}]`, ',"session_id":"TEXT"'),
        chat(`[${text},${image}]`, ',"observation_id":"TEXT"'),
        chat(`[${text},${image}]`, ',"TEXT":1'),
        chat(`[${text},${image}]`, ',"unknown":"TEXT"'),
        chat(`[${text},${image}]`, ',"unknown":{"a":["TEXT"]}'),
        '{"model":"TEXT"}',
        `{"model":"${SAMPLE_MODEL}","messages":"TEXT"}`,
        `{"model":"${SAMPLE_MODEL}","messages":[{"role":"TEXT"}]}`,
        chat(`[${text},${image}]`, "").replace(state, '"TEXT"'),
        chat(`[${text},${image}]`, "").replace(state, '{"joint_position":["TEXT"]}'),
        '["TEXT"]',
        '"TEXT"',
        '"TEXT',
      ],
    },
    {
      path: RESPONSES,
      most: LIMITS.llmBodyBytesMax,
      places: [
        `{"model":"${LLM_MODEL}","input":"TEXT"}`,
        `{"model":"${LLM_MODEL}","input":[{"role":"user","content":[{"type":"input_text","text":"TEXT"}]}]}`,
        `{"model":"${LLM_MODEL}","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,TEXT"}]}]}`,
        `{"model":"${LLM_MODEL}","input":[{"type":"function_call_output","call_id":"c","output":"TEXT"}]}`,
        ask(',"instructions":"TEXT"'),
        ask(',"metadata":{"a":"TEXT"}'),
        ask(',"metadata":{"TEXT":"a"}'),
        ask(',"tools":[{"type":"function","name":"TEXT"}]'),
        ask(',"tools":[{"type":"function","name":"f","description":"TEXT"}]'),
        ask(',"tools":[{"type":"function","name":"f","parameters":{"TEXT":"a"}}]'),
        ask(',"tools":[{"type":"function","name":"f","parameters":{"a":["TEXT"]}}]'),
        ask(',"text":{"format":{"type":"json_schema","name":"n","schema":{"TEXT":1}}}'),
        ask(',"user":"TEXT"'),
        ask(',"TEXT":1'),
        ask(',"unknown":"TEXT"'),
        '{"model":"TEXT"}',
        '"TEXT"',
      ],
    },
    {
      path: COMPLETE,
      most: LIMITS.runJsonBytesMax,
      places: [
        '{"files":[{"path":"TEXT","size":1}]}',
        '{"files":[{"path":"a","size":1,"sha256":"TEXT"}]}',
        '{"files":[{"path":"a","size":1}],"metadata":{"a":"TEXT"}}',
        '{"files":[{"path":"a","size":1}],"metadata":{"TEXT":"a"}}',
        '{"files":"TEXT"}',
      ],
    },
    {
      path: UPLOAD,
      most: LIMITS.runJsonBytesMax,
      places: ['{"size":"TEXT"}', '{"size":1,"sha256":"TEXT"}', '{"TEXT":1}'],
    },
  ];
}

function bodies(): Hostile[] {
  const most = LIMITS.robotBodyBytesMax;
  const many = (one: (at: number) => string, bytes: number) => {
    const count = LIMITS.jsonValuesMax - 10;
    const room = Math.floor(bytes / count) - one(0).length - 6;
    return Array.from({ length: count }, (_, at) => one(at).replace("TEXT", "\\\\".repeat(Math.floor(room / 2)))).join(
      ",",
    );
  };
  const shapes = [
    { name: "small arrays", path: CHAT, body: `[${"[],".repeat(Math.floor((most - 4) / 3))}[]]` },
    { name: "200,000 levels of arrays", path: CHAT, body: "[".repeat(200_000) },
    { name: "200,000 levels of objects", path: CHAT, body: '{"a":'.repeat(200_000) },
    { name: "small objects", path: CHAT, body: `[${'{"a":1},'.repeat(Math.floor((most - 10) / 8))}1]` },
    { name: "quotes", path: CHAT, body: '"'.repeat(most) },
    { name: "20,000 strings", path: CHAT, body: `{"a":[${many(() => '"TEXT"', most)}]}` },
    { name: "20,000 keys", path: CHAT, body: `{${many((at) => `"${at}TEXT":1`, most)}}` },
    { name: "one number", path: CHAT, body: `{"a":${"7".repeat(most - 10)}}` },
    { name: "20,000 strings", path: RESPONSES, body: `{"a":[${many(() => '"TEXT"', LIMITS.llmBodyBytesMax)}]}` },
    {
      name: "20,000 keys of a schema",
      path: RESPONSES,
      body: `{"model":"${LLM_MODEL}","input":"a","tools":[{"type":"function","name":"f","parameters":{${many((at) => `"${at}TEXT":1`, LIMITS.llmBodyBytesMax - 200)}}}]}`,
    },
    {
      name: "20,000 keys of metadata",
      path: COMPLETE,
      body: `{"files":[{"path":"a","size":1}],"metadata":{${many((at) => `"${at}TEXT":1`, LIMITS.runJsonBytesMax - 200)}}}`,
    },
  ];
  const texts = placesOf(most).flatMap(({ path, most, places }) =>
    places.flatMap((place) =>
      Object.entries(PIECES).map(([name, piece]) => ({
        name: `${name} in ${shown(place)}`,
        path,
        body: fill(place, piece, most),
      })),
    ),
  );
  return [...shapes, ...texts];
}

/** Around the text. */
function shown(place: string): string {
  const at = place.indexOf("TEXT");
  return place.slice(Math.max(0, at - 24), at + 12);
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

/** The problem, if the service accepts the body, or fails. */
async function post(child: Child, path: string, body: Uint8Array): Promise<undefined | Problem> {
  const { url, apiKey } = child.service;
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}` },
    body,
  });
  const text = await response.text();
  if (response.status !== 500 && response.status !== 429) return undefined;
  return new Problem(`a hostile body got ${response.status}: ${text.slice(0, 200)}`);
}
