/** What only a real socket shows. */
import { expect, test } from "bun:test";
import { readCertificate } from "../../src/http/certificate.ts";
import { type Listener, listen } from "../../src/http/listen.ts";
import { opsApp } from "../../src/service/ops/metrics.ts";
import { Problem } from "../../src/std/problem.ts";
import { observation, type Stage, stage } from "../robot/stage.ts";
import { temporaryFolder } from "../store/temporary.ts";
import { makePair } from "./certificates.ts";

const free = { host: "127.0.0.1", port: 0 };

function opened(result: Listener | Problem): Listener & AsyncDisposable {
  if (result instanceof Problem) throw new Error(result.message);
  return { ...result, [Symbol.asyncDispose]: () => result.stop() };
}

function chat(at: Stage, url: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${at.key}` },
    body: JSON.stringify(observation({ session_id: "s" })),
    ...init,
  });
}

test("every response over a socket has a request id, whatever the method", async () => {
  const at = await stage();
  await using server = opened(listen(at.app, free));
  const asks: [string, string, number][] = [
    ["GET", "/healthz", 200],
    ["HEAD", "/healthz", 200],
    ["PUT", "/healthz", 404],
    ["OPTIONS", "/v1/chat/completions", 404],
    ["GET", "/nothing", 404],
    ["POST", "/v1/chat/completions", 401],
  ];
  for (const [method, path, status] of asks) {
    const response = await fetch(server.url + path, { method });
    expect([method, path, response.status]).toEqual([method, path, status]);
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  }
});

test("where TLS is ours every answer keeps browsers to it, errors too; over plain HTTP, as of a proxy, none does", async () => {
  await using dir = await temporaryFolder();
  const certificate = await readCertificate(await makePair(dir.path, "here"));
  if (certificate instanceof Problem) throw new Error(certificate.message);
  const at = await stage();
  await using secure = opened(listen(at.app, free, { certificate }));
  await using plain = opened(listen((await stage()).app, free));
  const told = async (url: string, path: string, init: RequestInit = {}) => {
    const headers = { "x-forwarded-proto": "https" };
    const options = { redirect: "manual", tls: { rejectUnauthorized: false }, headers, ...init } as const;
    return (await fetch(url + path, options)).headers.get("strict-transport-security");
  };
  for (const path of ["/healthz", "/nothing", "/account", "/sign-in", "/docs", "/v1/models", "/v1/responses"]) {
    for (const method of ["GET", "HEAD"]) {
      expect([method, path, await told(secure.url, path, { method })]).toEqual([method, path, "max-age=31536000"]);
      expect([method, path, await told(plain.url, path, { method })]).toEqual([method, path, null]);
    }
  }
});

test("a chunk over a socket", async () => {
  const at = await stage();
  await using server = opened(listen(at.app, free));
  const response = await chat(at, server.url);
  expect([response.status, response.headers.get("x-session-step")]).toEqual([200, "0"]);
});

test("bodies over the limit get our error object, announced or chunked", async () => {
  const at = await stage();
  await using server = opened(listen(at.app, free));
  const big = new Uint8Array(9 * 1024 * 1024);
  const chunked = new ReadableStream({
    start(controller) {
      controller.enqueue(big);
      controller.close();
    },
  });
  for (const body of [big, chunked]) {
    const response = await chat(at, server.url, { body });
    expect([response.status, await response.json()]).toMatchObject([413, { error: { code: "request_too_large" } }]);
  }
  expect(at.service.http.ingress.bytes).toBe(0);
});

test("a Content-Length that is sent twice does not harm the budget of all bodies", async () => {
  const at = await stage();
  await using server = opened(listen(at.app, free));
  const { port } = new URL(server.url);
  const body = JSON.stringify(observation());
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${at.key}\r\n`;
  const answered = Promise.withResolvers<string>();
  await using socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: Number(port),
    socket: { data: (_, bytes) => answered.resolve(bytes.toString()), close: () => answered.reject("closed") },
  }).then((open) => ({
    write: open.write.bind(open),
    [Symbol.asyncDispose]: async () => {
      open.end();
    },
  }));
  socket.write(`${head}${length}${length}\r\n${body}`);
  expect((await answered.promise).split("\r\n")[0]).toBe("HTTP/1.1 200 OK");
  expect(at.service.http.ingress.bytes).toBe(0);
  expect((await chat(at, server.url)).status).toBe(200);
});

test("a client that closes its connection while frames are decoded frees everything", async () => {
  const at = await stage();
  await using server = opened(listen(at.app, free));
  const decoding = Promise.withResolvers<void>();
  at.engine.script.decode = () => {
    decoding.resolve();
    return new Promise(() => {});
  };
  const left = Promise.withResolvers<void>();
  const end = at.service.core.lifecycle.leave.bind(at.service.core.lifecycle);
  at.service.core.lifecycle.leave = () => {
    end();
    left.resolve();
  };
  const client = new AbortController();
  const asked = chat(at, server.url, { signal: client.signal }).catch(() => undefined);
  await decoding.promise;
  client.abort();
  await asked;
  await left.promise;
  expect([at.engine.framesHeld, at.engine.observations.length, at.service.robot.sessions.size]).toEqual([0, 0, 0]);
});

test("a taken port is a problem that says so", async () => {
  const at = await stage();
  await using server = opened(listen(at.app, free));
  const port = Number(new URL(server.url).port);
  expect(listen(at.app, { host: "127.0.0.1", port })).toMatchObject({
    exit: 1,
    message: expect.stringContaining("the port is taken"),
  });
});

test("stop() ends although a client keeps its connection", async () => {
  const at = await stage();
  const server = opened(listen(at.app, free));
  await (await fetch(`${server.url}/healthz`, { keepalive: true })).text();
  await server.stop();
  expect(await fetch(`${server.url}/healthz`).catch(() => "refused")).toBe("refused");
});

test("GET /metrics only on the operations listener", async () => {
  const at = await stage();
  await at.chat(observation());
  const idle = { replicas: 2, replicasOut: 1, inferences: 3, slots: 8, slotsHeld: 4, framesWaiting: 5 };
  at.engine.figures.push({ device: "cuda:0", health: "ready", reason: null, ...idle });
  at.engine.figures.push({ device: "cuda:1", health: "lost", reason: "device lost", ...idle });
  const app = opsApp(at.service.http, at.service.ops, () => at.engine);
  await using server = opened(listen(app, free));
  const response = await fetch(`${server.url}/metrics`);
  const text = await response.text();
  expect(response.headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
  expect(text).toContain('tendon_requests_total{route="chat",status="200"} 1\n');
  expect(text).toContain("# TYPE tendon_start_ms histogram\n");
  expect(text).toContain('tendon_start_ms_count{route="chat"} 1\n');
  expect(text).toContain("# TYPE tendon_engine_chunks_run_total counter\ntendon_engine_chunks_run_total 1\n");
  const devices = ["cuda:0", "cuda:1"];
  for (const [name, values] of [
    ["takes_work", [1, 0]],
    ["replicas_out", [1, 1]],
    ["inferences", [3, 3]],
    ["frames_waiting", [5, 5]],
  ] as const) {
    for (const [at, device] of devices.entries())
      expect(text).toContain(`tendon_device_${name}{device="${device}"} ${values[at]}\n`);
  }
  expect((await fetch(`${server.url}/healthz`)).status).toBe(404);
});
