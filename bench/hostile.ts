/** How long do hostile bodies hold the event loop? A 1 ms timer in the server's process says how late it came. */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { SAMPLE_MODEL } from "../src/cli/sample.ts";
import { Problem } from "../src/error/problem.ts";
import { LIMITS } from "../src/limits.ts";
import { type Child, startChild } from "../src/measure/child.ts";
import { table } from "../src/std/text-table.ts";
import { type Figure, figureLines, type Proof, withinLimits } from "./proof.ts";

const ROUNDS = { small: 2, full: 50 } as const;
/** Asked for. */
const LATE_MS_MAX = 20;

const Late = Type.Object({ late_ms: Type.Number() });

/** Bodies, and the code that each must get; those without a limit are there to be seen. */
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
  question: "How long do hostile JSON bodies hold the event loop?",
  async run(size) {
    let heard: (message: unknown) => void = () => undefined;
    const child = await startChild({
      program: [process.execPath, join(import.meta.dir, "server-child.ts")],
      model: SAMPLE_MODEL,
      device: "echo",
      onMessage: (message) => heard(message),
    });
    if (child instanceof Problem) return child;
    const late = async (): Promise<number> => {
      const answer = await new Promise<unknown>((resolve) => {
        heard = resolve;
        child.send("late");
      });
      return Value.Check(Late, answer) ? answer.late_ms : Number.NaN;
    };
    try {
      const rows: Figure[] = [];
      for (const { name, body, judged } of bodies()) {
        const bytes = Buffer.from(body);
        // Once for the compiler.
        const first = await post(child, bytes);
        if (first instanceof Problem) return first;
        await late();
        let worst = 0;
        for (let round = 0; round < ROUNDS[size]; round += 1) {
          const posted = await post(child, bytes);
          if (posted instanceof Problem) return posted;
          worst = Math.max(worst, await late());
        }
        const asked = judged ? { limit: LATE_MS_MAX } : {};
        rows.push({
          measure: `${name}: greatest lateness, ${ROUNDS[size]} bodies`,
          value: worst,
          unit: "ms",
          ...asked,
        });
      }
      await Bun.sleep(500);
      await late();
      await Bun.sleep(ROUNDS[size] * 40);
      rows.push({ measure: "no request at all: greatest lateness", value: await late(), unit: "ms" });
      return { text: table(figureLines(rows), ["left", "right"]), rows, pass: withinLimits(rows) };
    } finally {
      await child.stop();
    }
  },
};

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
