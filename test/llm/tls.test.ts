/** Providers over TLS: their certificates are checked. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
import { Client, type Intake } from "../../src/llm/provider/client.ts";
import { Fault } from "../../src/llm/provider/fault.ts";
import { systemClock } from "../../src/std/clock.ts";
import { type TemporaryFolder, temporaryFolder } from "../store/temporary.ts";

let folder: TemporaryFolder;
let server: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  folder = await temporaryFolder();
  const [key, cert] = [join(folder.path, "key.pem"), join(folder.path, "cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const made = Bun.spawnSync([
    ...["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"],
    ...["-keyout", key, "-out", cert, ...subject],
  ]);
  expect(made.exitCode).toBe(0);
  const tls = { key: await Bun.file(key).text(), cert: await Bun.file(cert).text() };
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => Response.json({ said: "hello" }) });
});

afterAll(async () => {
  await server.stop(true);
  await folder[Symbol.asyncDispose]();
});

test("a provider whose certificate nobody has signed is not connected to, and gets no key", async () => {
  const client = new Client({
    baseUrl: `https://localhost:${server.port}/v1`,
    apiKey: "sk-secret",
    connections: 4,
    firstByteMs: 5_000,
    idleMs: 5_000,
    totalMs: 10_000,
    clock: systemClock,
  });
  const intake: Intake = { begin: () => undefined, bytes: () => undefined };
  const { signal } = new AbortController();
  const fault = await client.call({ path: "x", body: "{}", stream: false, once: false, signal }, intake);
  expect(fault).toBeInstanceOf(Fault);
  expect([fault?.kind, fault?.detail]).toEqual(["unavailable", expect.stringMatching(/^no answer: .*(SELF|CERT)/i)]);
});

/** What a process gets that trusts the certificate. */
async function trusting(host: string): Promise<string> {
  const cert = join(folder.path, "cert.pem");
  const script = join(import.meta.dir, "tls-child.ts");
  const child = Bun.spawn([process.execPath, script, `https://${host}:${server.port}/v1`], {
    env: childEnvironment({ NODE_EXTRA_CA_CERTS: cert }),
    stdout: "pipe",
  });
  return await child.stdout.text();
}

test("one whose certificate is trusted is asked, in a process that trusts it", async () => {
  expect(await trusting("localhost")).toBe('{"said":"hello"}\n');
});

test("one whose certificate is for another name is not connected to, also in a process that trusts it", async () => {
  expect(await trusting("127.0.0.1")).toMatch(/^no answer: .*(ALTNAME|HOSTNAME|CERT)/);
});
