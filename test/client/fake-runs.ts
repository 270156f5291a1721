/** Run storage in memory, by contract section 7: enough of it for a client to be tested. No quota, no expiry. */
import { createHash, randomUUID } from "node:crypto";

interface Held {
  readonly bytes: Uint8Array;
  readonly sha256: string;
}

interface Upload {
  readonly path: string;
  readonly size: number;
  readonly sha256: string | undefined;
  readonly parts: Map<number, Held>;
}

interface Run {
  readonly files: Map<string, Held>;
  readonly uploads: Map<string, Upload>;
  /** Answers of finishes, which are given again. */
  readonly finished?: Map<string, { readonly path: string; readonly size: number; readonly sha256: string }>;
  manifest?: { readonly list: string; readonly body: Record<string, unknown> };
}

const PART_BYTES = 16 * 2 ** 20;
const WHOLE_BYTES_MAX = 64 * 2 ** 20;

class Refusal {
  constructor(
    readonly status: number,
    readonly code: string,
  ) {}
}

const hex = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

export class FakeRuns implements AsyncDisposable {
  readonly key = "tdn_0123456789abcdefghijklmnop";
  readonly runs = new Map<string, Run>();
  private readonly server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: 2 ** 30,
    fetch: (request) => this.answer(request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop(true);
  }

  private async answer(request: Request): Promise<Response> {
    const outcome = await this.routed(request);
    if (!(outcome instanceof Refusal)) return outcome;
    const { status, code } = outcome;
    return Response.json({ error: { code, type: "invalid_request_error", message: "see the contract" } }, { status });
  }

  private async routed(request: Request): Promise<Response | Refusal> {
    const url = new URL(request.url);
    if (request.headers.get("authorization") !== `Bearer ${this.key}`) return new Refusal(401, "invalid_api_key");
    const route = /^\/v1\/robot\/runs(?:\/([^/]+)(?:\/([^/]+)(?:\/(complete|files|uploads)(?:\/(.+))?)?)?)?$/;
    const [, robot, run, kind, rest] = route.exec(url.pathname) ?? [];
    const { method } = request;
    if (robot === undefined) return this.list(url.searchParams);
    if (run === undefined) return this.usage();
    const name = `${robot}/${run}`;
    if (kind === undefined) return method === "DELETE" ? this.remove(name) : this.manifest(name);
    const held = this.run(name);
    if (kind === "complete") return await this.complete(request, { robot, run }, held);
    const path = decodeURIComponent(rest ?? "");
    if (kind === "files") return await this.file(request, held, path);
    return await this.upload(request, held, path, url.searchParams);
  }

  private run(name: string): Run {
    const run = this.runs.get(name) ?? { files: new Map(), uploads: new Map(), finished: new Map() };
    this.runs.set(name, run);
    return run;
  }

  private list(query: URLSearchParams): Response {
    const robot = query.get("robot");
    const all = [...this.runs.values()].flatMap(({ manifest }) => (manifest === undefined ? [] : [manifest.body]));
    const data = all
      .filter((run) => robot === null || run.robot === robot)
      .map((run) => ({ ...run, files: (run.files as unknown[]).length, object: undefined, metadata: undefined }))
      .reverse();
    const from = Number(query.get("after") ?? 0);
    const end = from + Number(query.get("limit") ?? 100);
    const more = end < data.length;
    return Response.json({ object: "list", data: data.slice(from, end), has_more: more, next: more ? `${end}` : null });
  }

  private usage(): Response {
    const month = { start: 1_700_000_000, uploaded_bytes: 5, downloaded_bytes: 6, requests: 7 };
    const facts = { stored_bytes: 1_500, reserved_bytes: 0, quota_bytes: 10_000_000, runs: this.runs.size, month };
    return Response.json({ object: "robot.usage", ...facts });
  }

  private manifest(name: string): Response | Refusal {
    const manifest = this.runs.get(name)?.manifest;
    return manifest === undefined ? new Refusal(404, "run_not_found") : Response.json(manifest.body);
  }

  private remove(name: string): Response | Refusal {
    return this.runs.delete(name) ? new Response(null, { status: 204 }) : new Refusal(404, "run_not_found");
  }

  private async complete(request: Request, name: { robot: string; run: string }, run: Run) {
    const { files, metadata = {} } = JSON.parse(await request.text());
    const list = JSON.stringify([files, metadata]);
    if (run.manifest !== undefined) {
      return run.manifest.list === list ? Response.json(run.manifest.body) : new Refusal(409, "run_completed");
    }
    if (run.uploads.size > 0) return new Refusal(409, "upload_in_progress");
    const listed = new Map<string, { size: number }>(files.map((file: { path: string }) => [file.path, file]));
    const whole = [...listed].every(([path, { size }]) => run.files.get(path)?.bytes.length === size);
    if (!whole || listed.size !== run.files.size) return new Refusal(409, "run_incomplete");
    const shown = [...run.files].map(([path, { bytes, sha256 }]) => ({
      ...{ path, size: bytes.length, sha256, content_type: "application/octet-stream" },
    }));
    const size = shown.reduce((sum, file) => sum + file.size, 0);
    const facts = { object: "robot.run", ...name, completed_at: 1_700_000_000, size };
    run.manifest = { list, body: { ...facts, files: shown, metadata } };
    return Response.json(run.manifest.body);
  }

  private async file(request: Request, run: Run, path: string): Promise<Response | Refusal> {
    if (request.method === "PUT") {
      const taken = await this.taken(request);
      if (run.manifest !== undefined) return new Refusal(409, "run_completed");
      if ([...run.uploads.values()].some((upload) => upload.path === path)) {
        return new Refusal(409, "upload_in_progress");
      }
      if (taken instanceof Refusal) return taken;
      const status = run.files.has(path) ? 200 : 201;
      run.files.set(path, taken);
      return Response.json({ path, size: taken.bytes.length, sha256: taken.sha256 }, { status });
    }
    if (request.method === "DELETE") {
      return run.files.delete(path) ? new Response(null, { status: 204 }) : new Refusal(404, "file_not_found");
    }
    const held = run.files.get(path);
    if (run.manifest === undefined) return new Refusal(404, "run_not_found");
    if (held === undefined) return new Refusal(404, "file_not_found");
    return served(request.headers, held);
  }

  /** A body whose digest is the one that was announced, as it must be. */
  private async taken(request: Request): Promise<Held | Refusal> {
    const length = request.headers.get("content-length");
    if (length === null) return new Refusal(411, "length_required");
    const bytes = await request.bytes();
    if (bytes.length > WHOLE_BYTES_MAX) return new Refusal(413, "request_too_large");
    const announced = /^sha-256=:([^:]+):$/.exec(request.headers.get("content-digest") ?? "")?.[1];
    if (announced === undefined) return new Refusal(422, "invalid_request");
    const sha256 = hex(bytes);
    if (Buffer.from(announced, "base64").toString("hex") !== sha256) return new Refusal(422, "checksum_mismatch");
    return { bytes, sha256 };
  }

  private async upload(request: Request, run: Run, path: string, query: URLSearchParams) {
    const id = query.get("upload_id");
    if (id === null) return request.method === "POST" ? await this.start(request, run, path) : open(run, path);
    const before = run.finished?.get(id);
    if (request.method === "POST" && before?.path === path) return Response.json(before);
    if (request.method === "GET" && before?.path === path) {
      return Response.json({ upload_id: id, size: before.size, part_size: PART_BYTES, received: [], expires_at: 1 });
    }
    const upload = run.uploads.get(id);
    if (upload === undefined || upload.path !== path) return new Refusal(404, "upload_not_found");
    const { size, parts } = upload;
    if (request.method === "DELETE") {
      run.uploads.delete(id);
      return new Response(null, { status: 204 });
    }
    if (request.method === "PUT") {
      const part = Number(query.get("part"));
      const taken = await this.taken(request);
      if (taken instanceof Refusal) return taken;
      const expected = Math.min(PART_BYTES, size - (part - 1) * PART_BYTES);
      if (taken.bytes.length !== expected) return new Refusal(422, "invalid_request");
      parts.set(part, taken);
      return Response.json({ part, size: taken.bytes.length, sha256: taken.sha256 });
    }
    if (request.method === "POST") return finish(run, id, upload);
    const received = [...parts].map(([part, { bytes, sha256 }]) => ({ part, size: bytes.length, sha256 }));
    return Response.json({ upload_id: id, size, part_size: PART_BYTES, received, expires_at: 2_000_000_000 });
  }

  private async start(request: Request, run: Run, path: string): Promise<Response | Refusal> {
    const { size, sha256 } = JSON.parse(await request.text());
    if (run.manifest !== undefined) return new Refusal(409, "run_completed");
    if ([...run.uploads.values()].some((upload) => upload.path === path)) return new Refusal(409, "upload_in_progress");
    if (run.uploads.size >= 16) return new Refusal(429, "too_many_uploads");
    const id = randomUUID();
    run.uploads.set(id, { path, size, sha256, parts: new Map() });
    const parts = Math.ceil(size / PART_BYTES);
    const facts = { upload_id: id, part_size: PART_BYTES, parts, expires_at: 2_000_000_000 };
    return Response.json(facts, { status: 201 });
  }
}

function open(run: Run, path: string): Response {
  const found = [...run.uploads].filter(([, upload]) => upload.path === path);
  const data = found.map(([upload_id, { size }]) => ({ upload_id, size, part_size: PART_BYTES, expires_at: 1 }));
  return Response.json({ data });
}

function finish(run: Run, id: string, { path, size, sha256, parts }: Upload): Response | Refusal {
  if (parts.size < Math.ceil(size / PART_BYTES)) return new Refusal(409, "run_incomplete");
  const ordered = [...parts].sort(([a], [b]) => a - b).map(([, { bytes }]) => bytes);
  const bytes = new Uint8Array(Buffer.concat(ordered));
  const whole = { bytes, sha256: hex(bytes) };
  run.uploads.delete(id);
  if (sha256 !== undefined && sha256 !== whole.sha256) return new Refusal(422, "checksum_mismatch");
  run.files.set(path, whole);
  run.finished?.set(id, { path, size, sha256: whole.sha256 });
  return Response.json({ path, size, sha256: whole.sha256 });
}

function served(asked: Headers, { bytes, sha256 }: Held): Response | Refusal {
  const etag = `"sha256-${sha256}"`;
  const headers = { etag, "accept-ranges": "bytes", "content-type": "application/octet-stream" };
  const from = /^bytes=(\d+)-$/.exec(asked.get("range") ?? "")?.[1];
  const same = (asked.get("if-range") ?? etag) === etag;
  if (from === undefined || !same) return new Response(bytes as Uint8Array<ArrayBuffer>, { headers });
  if (Number(from) >= bytes.length) return new Refusal(416, "invalid_range");
  const range = `bytes ${from}-${bytes.length - 1}/${bytes.length}`;
  const rest = bytes.slice(Number(from));
  return new Response(rest, { status: 206, headers: { ...headers, "content-range": range } });
}
