/**
 * How long do hostile bodies hold the event loop? A 1 ms timer in the server's process says how late it came. And does a robot feel a
 * crowd that pays nothing (hostile-crowd.ts)?
 */
import { Problem } from "../src/error/problem.ts";
import { LIMITS } from "../src/limits.ts";
import type { Child } from "../src/measure/child.ts";
import { crowd } from "./hostile-crowd.ts";
import { type MeasuredServer, startServer } from "./measured-server.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const ROUNDS = { small: 2, full: 50 } as const;
/** Asked for. */
const LATE_MS_MAX = 20;

/** Bodies; those that are not judged are reported only. */
function bodies(): { name: string; body: string; judged: boolean }[] {
  const most = LIMITS.robotBodyBytesMax;
  return [
    { name: "8 MiB of small arrays", body: `[${"[],".repeat(Math.floor((most - 4) / 3))}[]]`, judged: true },
    { name: "200,000 levels of arrays", body: "[".repeat(200_000), judged: true },
    { name: "200,000 levels of objects", body: '{"a":'.repeat(200_000), judged: true },
    { name: "8 MiB of small objects", body: `[${'{"a":1},'.repeat(Math.floor((most - 10) / 8))}1]`, judged: true },
    { name: "8 MiB of quotes", body: '"'.repeat(most), judged: true },
    {
      name: "8 MiB of backslashes in a string",
      body: `["${"\\\\".repeat(Math.floor((most - 4) / 2))}"]`,
      judged: false,
    },
    { name: "8 MiB of one string", body: `["${"a".repeat(most - 4)}"]`, judged: false },
  ];
}

export const hostile: Proof = {
  name: "hostile",
  question: "How long do hostile bodies hold the event loop, and does a robot feel a crowd that pays nothing?",
  async run(size) {
    const server = await startServer("echo");
    if (server instanceof Problem) return server;
    try {
      const rows = await lateness(server, ROUNDS[size]);
      if (rows instanceof Problem) return rows;
      const beside = await crowd(size);
      return beside instanceof Problem ? beside : judged([...rows, ...beside.rows], { above: beside.text });
    } finally {
      await server.child.stop();
    }
  },
};

async function lateness(server: MeasuredServer, rounds: number): Promise<Figure[] | Problem> {
  const rows: Figure[] = [];
  for (const { name, body, judged } of bodies()) {
    const worst = await worstOf(server, Buffer.from(body), rounds);
    if (worst instanceof Problem) return worst;
    const limit = judged ? { limit: LATE_MS_MAX } : {};
    rows.push({ measure: `${name}: greatest lateness, ${rounds} bodies`, value: worst, unit: "ms", ...limit });
  }
  await Bun.sleep(500);
  await server.lateMs();
  await Bun.sleep(rounds * 40);
  const idle = await server.lateMs();
  if (idle instanceof Problem) return idle;
  return [...rows, { measure: "no request at all: greatest lateness", value: idle, unit: "ms" }];
}

/** The greatest lateness while the body is handled. The first of them is for the compiler and does not count. */
async function worstOf(server: MeasuredServer, body: Uint8Array, rounds: number): Promise<number | Problem> {
  let worst = 0;
  for (let round = -1; round < rounds; round += 1) {
    const refused = await post(server.child, body);
    if (refused !== undefined) return refused;
    const late = await server.lateMs();
    if (late instanceof Problem) return late;
    if (round >= 0) worst = Math.max(worst, late);
  }
  return worst;
}

/** The problem, unless the service refuses the body with the code that it must give. */
async function post(child: Child, body: Uint8Array): Promise<undefined | Problem> {
  const { url, apiKey } = child.service;
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}` },
    body,
  });
  const text = await response.text();
  if (response.status === 400 && text.includes('"invalid_body"')) return undefined;
  return new Problem(`a hostile body got ${response.status}: ${text.slice(0, 200)}`);
}
