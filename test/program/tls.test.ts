/** `serve` with TENDON_TLS_CERT and TENDON_TLS_KEY as a process: the address it prints, clients with a private authority, a renewal, warnings. */
import { expect, test } from "bun:test";
import { connect } from "node:tls";
import { makePair, replacePair } from "../http/certificates.ts";
import { Place } from "./program.ts";

function nameAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.end();
    });
    socket.on("error", reject);
  });
}

test("https from end to end: ready, tendon's own commands with NODE_EXTRA_CA_CERTS, and a certificate that is replaced", async () => {
  await using place = await Place.make();
  const [files, next] = await Promise.all(["first", "second"].map((name) => makePair(place.dir, name)));
  if (!files || !next) throw new Error("two pairs are made");
  const env = { TENDON_TLS_CERT: "first.crt", TENDON_TLS_KEY: "first.key" };
  const server = await place.serve([], env);
  expect(server.ready.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const trusting = { NODE_EXTRA_CA_CERTS: files.cert };
  const [seen, refused] = await Promise.all([
    place.run(["status", "--base-url", server.ready.url], trusting),
    place.run(["status", "--base-url", server.ready.url]),
  ]);
  expect([seen.code, refused.code]).toEqual([0, 4]);
  const doctor = await place.run(["doctor", "--json"], env);
  expect(doctor.stdout).toContain("TLS");
  const port = Number(new URL(server.ready.url).port);
  await replacePair(next, files);
  while ((await nameAt(port)) !== "second") await Bun.sleep(50);
  expect(await server.stop()).toBe(0);
}, 60_000);

test("a wrong pair of files refuses the start; an address for others without TLS is one warning", async () => {
  await using place = await Place.make();
  const pair = await makePair(place.dir, "first");
  const start = (env: Record<string, string>) => place.run(["serve", "--dev", "--port", "0"], env);
  const [one, missing] = await Promise.all([
    start({ TENDON_TLS_CERT: pair.cert }),
    start({ TENDON_TLS_CERT: pair.cert, TENDON_TLS_KEY: `${pair.key}x` }),
  ]);
  expect([one.code, one.stderr]).toEqual([2, expect.stringContaining("TENDON_TLS_KEY is not; set both, or neither")]);
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("cannot be read: ENOENT")]);
  const open = await place.serve(["--host", "0.0.0.0"]);
  await open.stop();
  const logged = await new Response(open.child.stderr).text();
  expect(logged.split("\n").filter((line) => line.includes("no TLS"))).toHaveLength(1);
}, 60_000);
