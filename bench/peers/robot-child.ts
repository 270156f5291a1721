/**
 * A robot of tendon's: `bun bench/peers/robot-child.ts http|socket URL KEY FOLDER NAME`. Each line of standard input is a number of
 * observations; the answer is the milliseconds of each as JSON. The session lasts as long as the process.
 *
 * Over HTTP: from handing the ready request text to HTTP until the reply is read, as in src/measure/chunk/load.ts. On a socket: from
 * the first frame until the chunk is read; frames and observation go out right after each other.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { CHAT_ROUTE, chunkOf } from "../../src/client/chunk.ts";
import { post, type Service } from "../../src/client/http.ts";
import { requestBody } from "../../src/client/request.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../../src/measure/sample/observation.ts";
import { Problem } from "../../src/std/problem.ts";
import { onSocket } from "../one-robot.ts";

/** One observation; its number is its id. */
type Observe = (sent: number) => Promise<Problem | undefined>;

function overHttp(service: Service, frames: readonly Uint8Array[], sessionId: string): Observe {
  const request = { model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, state: SAMPLE_STATE, sessionId, frames };
  const rest = JSON.stringify(requestBody(request)).slice(1);
  return async (sent) => {
    const answer = await post(service, CHAT_ROUTE, `{"observation_id":"${sent}","expected_step":${sent},${rest}`);
    if (answer instanceof Problem) return answer;
    return chunkOf(answer.body) === undefined ? new Problem("the service answered without an action chunk") : undefined;
  };
}

async function robot(words: readonly string[]): Promise<Observe | Problem> {
  const [way, url = "", apiKey = "", folder = "", name = ""] = words;
  // One observation: a frame of each camera.
  const names = (await readdir(folder)).sort().slice(0, 3);
  const frames = await Promise.all(names.map((file) => Bun.file(join(folder, file)).bytes()));
  const service = { url, apiKey };
  if (way !== "socket") return overHttp(service, frames, name);
  const turns = await onSocket(service, frames, "together");
  if (turns instanceof Problem) return turns;
  return async () => {
    const driven = await turns.drive(1);
    return driven instanceof Problem ? driven : undefined;
  };
}

async function main(): Promise<Problem | undefined> {
  const observe = await robot(process.argv.slice(2));
  if (observe instanceof Problem) return observe;
  process.stdout.write("ready\n");
  let sent = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const ms: number[] = [];
    for (let left = Number(line); left > 0; left -= 1) {
      const before = performance.now();
      const problem = await observe(sent);
      ms.push(performance.now() - before);
      if (problem !== undefined) return problem;
      sent += 1;
    }
    process.stdout.write(`${JSON.stringify(ms)}\n`);
  }
  return undefined;
}

const problem = await main();
if (problem !== undefined) process.stderr.write(`${problem.message}\n`);
process.exit(problem === undefined ? 0 : 1);
