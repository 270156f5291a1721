/**
 * `/docs/robot-runs` says what the specification and the service say, and what it shows works. Its commands run against a service
 * with real stores. The log's own reader reads its log. Its tables name what the schemas and the tables of errors have.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { admin } from "../../../src/cli/admin.ts";
import { runs as runsCommands } from "../../../src/cli/runs.ts";
import { exportRun } from "../../../src/cli/runs-export/command.ts";
import { EPISODE_FILE, EpisodeHead, EpisodeObservation } from "../../../src/client/episode-log/format.ts";
import { openEpisode } from "../../../src/client/episode-log/read.ts";
import { BLOB_SETTINGS } from "../../../src/config/blobs.ts";
import { Drills, readDrills } from "../../../src/drill.ts";
import { LIMITS } from "../../../src/limits.ts";
import text from "../../../src/runs/docs/robot-runs.md" with { type: "text" };
import { RUNS } from "../../../src/runs/errors.ts";
import { Problem } from "../../../src/std/problem.ts";
import { type Published, published } from "../../http/document/published.ts";
import { stage } from "../../robot/stage.ts";
import { temporaryFolder } from "../../store/temporary.ts";
import type { Person } from "../person.ts";
import { RunsStage } from "../stage.ts";

const ROOT = resolve(import.meta.dir, "../../..");

/** The code blocks of a language, in their order. */
function blocks(language: string): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, code = ""]) => code);
}

let html: string;
let api: Published;
let service: RunsStage;
let person: Person;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  const at = await stage();
  html = await (await at.send("/docs/robot-runs")).text();
  api = await published(at);
  service = await RunsStage.start();
  person = await service.person();
  folder = await temporaryFolder();
  const program = join(folder.path, "tendon");
  await Bun.write(program, `#!/bin/sh\nexec ${process.execPath} ${join(ROOT, "src/main.ts")} "$@"\n`);
  await chmod(program, 0o755);
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** Runs snippets as their reader does, in an empty folder, with the two variables that the page names; standard output. */
async function shell(code: string, name: string): Promise<string> {
  const cwd = join(folder.path, name);
  await mkdir(cwd, { recursive: true });
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", code], {
    cwd,
    env: {
      PATH: `${folder.path}:${process.env.PATH}`,
      HOME: folder.path,
      TENDON_BASE_URL: service.url,
      TENDON_API_KEY: person.key,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect([await child.exited, stderr]).toEqual([0, ""]);
  return stdout;
}

const fileOf = (name: string, path: string) => Bun.file(join(folder.path, name, path)).bytes();

describe("the page", () => {
  test("names every code with its status, every command, every key of the configuration, every drill", () => {
    for (const { wire, status } of Object.values(RUNS))
      expect(html).toContain(`<tr><td><code>${wire}</code></td><td>${status}</td>`);
    const commands = [...runsCommands.commands, exportRun].map(({ name }) => name);
    const check = admin.commands.find(({ name }) => name === "admin runs check");
    expect([...commands, check?.name ?? "no such command"].filter((name) => !text.includes(`tendon ${name}`))).toEqual(
      [],
    );
    for (const key of Object.keys(BLOB_SETTINGS)) expect(text).toContain(`\`TENDON_${key.toUpperCase()}\`, \`${key}\``);
    expect(text).toContain(`| \`${BLOB_SETTINGS.s3_region.default}\` |`);
    for (const faults of ["storage_busy", "storage_unavailable"]) {
      expect(text.slice(text.indexOf("## Drills"))).toContain(faults);
      expect(readDrills(faults)).toBeInstanceOf(Drills);
    }
  });

  test("tells the limits as they are", () => {
    const limits = html.slice(html.indexOf('id="limits"'), html.indexOf('id="the-log-of-a-run"'));
    const told = ["64 MiB", "16 MiB", "2 GiB", "2,000", "100 GiB", "1 MiB", "7 days", "1,000"];
    expect(told.filter((words) => !limits.includes(words))).toEqual([]);
    expect([LIMITS.runUploadsMax, LIMITS.runGoneSeconds]).toEqual([16, 60]);
  });
});

describe("the log", () => {
  test("on the page is read whole by the log's reader", async () => {
    const [log = "", ...more] = blocks("json");
    expect(more).toEqual([]);
    await Bun.write(join(folder.path, "log", EPISODE_FILE), log);
    const opened = await openEpisode(join(folder.path, "log"));
    if (opened instanceof Problem) throw new Error(opened.message);
    const found = [];
    for await (const line of opened.observations) found.push(line instanceof Problem ? line.message : line.step);
    expect([opened.head.model, found]).toEqual(["vendorB/molmoact2:yam", [0, 1]]);
  });

  test("has the fields of its schema, in the schema's order and with its types", () => {
    const kind = ({ type, const: literal, anyOf = [] }: TSchema): string => {
      if (literal !== undefined) return `\`${JSON.stringify(literal)}\``;
      const kinds: Record<string, string> = { string: "text", integer: "whole number", array: "list", null: "null" };
      return anyOf.length > 0 ? anyOf.map(kind).join(" or ") : (kinds[type] ?? type);
    };
    const section = text.slice(text.indexOf("## The log of a run"), text.indexOf("## Command line"));
    const rows = [...section.matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)].map(([, name, type]) => `${name}: ${type}`);
    const fields = [EpisodeHead, EpisodeObservation].flatMap(({ properties }) =>
      Object.entries(properties).map(([name, schema]) => `${name}: ${kind(schema)}`),
    );
    expect(rows.map((row) => row.replace("list of numbers", "list"))).toEqual(fields);
  });
});

describe("the snippets", () => {
  const [put = "", complete = "", read = "", start = "", resume = "", commands = "", ...more] = blocks("bash");

  test("of a first run store two files, complete the run, read it and delete it", async () => {
    expect(more).toEqual([]);
    const said = (await shell([put, complete, read].join("\n"), "first")).replace(/\}\{/g, "}\n{").split("\n");
    const [notes, top, manifest, list, again] = said.map((line) => JSON.parse(line));
    const bytes = await fileOf("first", "top.bin");
    const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    expect([notes, top]).toEqual([
      { path: "notes.jsonl", size: 37, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { path: "cameras/top.bin", size: 300_000, sha256 },
    ]);
    expect(manifest).toMatchObject({
      object: "robot.run",
      robot: "lab-7",
      run: "fold-1",
      metadata: { operator: "kim" },
    });
    expect(list).toMatchObject({ data: [{ run: "fold-1", files: 2, size: 300_037 }], has_more: false, next: null });
    expect(again).toEqual(manifest);
    expect(await fileOf("first", "copy.bin")).toEqual(bytes);
    expect(await fileOf("first", "piece.bin")).toEqual(bytes.slice(1000, 2000));
    const gone = await fetch(`${service.url}/v1/robot/runs/lab-7/fold-1`, {
      headers: { authorization: `Bearer ${person.key}` },
    });
    expect(gone.status).toBe(404);
  }, 60_000);

  test("of an upload in parts send what is missing alone, and end with the whole file", async () => {
    const said = await shell(`${start}\n${resume}`, "parts");
    const sha256 = new Bun.CryptoHasher("sha256").update(await fileOf("parts", "top.mp4")).digest("hex");
    const answers = said
      .replace(/\}\{/g, "}\n{")
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answers).toMatchObject([
      { part: 1, size: LIMITS.runPartBytes },
      { part: 2, size: LIMITS.runPartBytes },
      { part: 3, size: 40_000_000 - 2 * LIMITS.runPartBytes },
      { path: "videos/top.mp4", size: 40_000_000, sha256 },
    ]);
  }, 60_000);

  test("of the command line push a folder, find it, and pull it byte for byte", async () => {
    await Bun.write(join(folder.path, "commands/episode-1/notes.txt"), "push me\n");
    const said = await shell(commands, "commands");
    expect(said).toContain("episode-1");
    expect(new TextDecoder().decode(await fileOf("commands", "copy/notes.txt"))).toBe("push me\n");
    expect(await service.rows("SELECT run FROM robot_runs WHERE run = 'episode-1'")).toEqual([]);
  }, 60_000);
});

test("the answers of run storage are as the document of the API says", async () => {
  const base = "/v1/robot/runs/{robot}/{run}";
  const check = async (operation: string, path: string, init: RequestInit = {}, status = 200) => {
    const [method = ""] = operation.split(" ");
    const headers = { authorization: `Bearer ${person.key}`, ...(init.headers as Record<string, string>) };
    const response = await fetch(`${service.url}/v1/robot/runs${path}`, { method, ...init, headers });
    const found = [operation, response.status, await api.answerFaults(operation, response)];
    expect(found).toEqual([operation, status, []]);
    return response;
  };
  const file = `${base}/files/{path}`;
  const upload = `${base}/uploads/{path}`;
  const send = (body: string | object) => ({ body: typeof body === "string" ? body : JSON.stringify(body) });
  await check(`PUT ${file}`, "/r/a/files/x", send("one"), 201);
  await check(`PUT ${file}`, "/r/a/files/x", send("two"), 200);
  await check(`PUT ${file}`, "/r/a/files/x", { ...send("two"), headers: { "x-content-sha256": "0".repeat(64) } }, 422);
  const started = await check(`POST ${upload}`, "/r/a/uploads/y", send({ size: 3 }), 201);
  const { upload_id } = (await started.json()) as { upload_id: string };
  await check(`POST ${upload}`, "/r/a/uploads/y", send({ size: 3 }), 409);
  await check(`GET ${upload}`, "/r/a/uploads/y");
  await check(`PUT ${upload}`, `/r/a/uploads/y?upload_id=${upload_id}&part=1`, send("six"));
  await check(`GET ${upload}`, `/r/a/uploads/y?upload_id=${upload_id}`);
  await check(`POST ${base}/complete`, "/r/a/complete", send({ files: [{ path: "x", size: 3 }] }), 409);
  await check(`POST ${upload}`, `/r/a/uploads/y?upload_id=${upload_id}`);
  await check(`POST ${upload}`, "/r/a/uploads/z", send({ size: 3 }), 201);
  const { data } = (await (await check(`GET ${upload}`, "/r/a/uploads/z")).json()) as { data: [{ upload_id: string }] };
  await check(`DELETE ${upload}`, `/r/a/uploads/z?upload_id=${data[0].upload_id}`, {}, 204);
  await check(`DELETE ${upload}`, "/r/a/uploads/z?upload_id=up_none", {}, 404);
  await check(`PUT ${file}`, "/r/a/files/w", send("bye"), 201);
  await check(`DELETE ${file}`, "/r/a/files/w", {}, 204);
  await check(`GET ${base}`, "/r/a", {}, 404);
  const files = ["x", "y"].map((path) => ({ path, size: 3 }));
  await check(`POST ${base}/complete`, "/r/a/complete", send({ files }));
  await check(`PUT ${file}`, "/r/a/files/x", send("two"), 409);
  await check(`GET ${base}`, "/r/a");
  const got = await check(`GET ${file}`, "/r/a/files/x");
  const etag = got.headers.get("etag") ?? "";
  await check(`GET ${file}`, "/r/a/files/x", { headers: { range: "bytes=1-1" } }, 206);
  await check(`GET ${file}`, "/r/a/files/x", { headers: { range: "bytes=9-" } }, 416);
  await check(`GET ${file}`, "/r/a/files/x", { headers: { "if-none-match": etag } }, 304);
  await check(`GET ${file}`, "/r/a/files/none", {}, 404);
  await check(`HEAD ${file}`, "/r/a/files/x");
  await check("GET /v1/robot/runs", "?robot=r&limit=1");
  await check("GET /v1/robot/runs", "?limit=0", {}, 422);
  await check("GET /v1/robot/runs/usage", "/usage");
  await check(`DELETE ${base}`, "/r/a", {}, 204);
  await check(`DELETE ${base}`, "/r/a", {}, 404);
  await check("GET /v1/robot/runs", "", { headers: { authorization: "" } }, 401);
}, 60_000);
