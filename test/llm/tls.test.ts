/** Providers over TLS: their certificates are checked. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
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

/** What a process gets that trusts the certificate, or only those that are known everywhere. */
async function asked(host: string, trust: "trusts it" | "trusts it not"): Promise<string> {
  const script = join(import.meta.dir, "tls-child.ts");
  const own = { NODE_EXTRA_CA_CERTS: join(folder.path, "cert.pem") };
  const child = Bun.spawn([process.execPath, script, `https://${host}:${server.port}/v1`], {
    env: childEnvironment(trust === "trusts it" ? own : {}),
    stdout: "pipe",
  });
  return await child.stdout.text();
}

test.each([
  ["localhost", "trusts it", /^\{"said":"hello"\}\n$/],
  ["localhost", "trusts it not", /^no answer: .*(SELF|CERT)/i],
  ["127.0.0.1", "trusts it", /^no answer: .*(ALTNAME|HOSTNAME|CERT)/],
] as const)(
  "a provider at %s with a certificate for localhost, for a process that %s: %p",
  async (host, trust, said) => {
    expect(await asked(host, trust)).toMatch(said);
  },
);
