/** TLS in the executable (contract section 8): a certificate is read anew when its files change, under load, and nothing fails. */
import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { certificateVersion, readCertificate } from "../../src/http/certificate.ts";
import { listen } from "../../src/http/listen.ts";
import { Renewal } from "../../src/service/renewal.ts";
import { Problem } from "../../src/std/problem.ts";
import { ok } from "../engine/opened.ts";
import { jointState, jpeg, MODEL, observation, type Stage, stage } from "../robot/stage.ts";
import { temporaryFolder } from "../store/temporary.ts";
import { makePair, replacePair } from "./certificates.ts";

/** The name in the certificate that a new connection gets. */
function nameAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, servername: "localhost", rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.end();
    });
    socket.on("error", reject);
  });
}

/** A robot on one connection: each call is one observation, answered with its step. */
async function episode(at: Stage, url: string) {
  const socket = new WebSocket(`${url.replace("https", "wss")}/v1/responses`, {
    headers: { authorization: `Bearer ${at.key}` },
    tls: { rejectUnauthorized: false },
  } as never);
  let closed = false;
  const gone = Promise.withResolvers<void>();
  let heard = (_: Record<string, unknown>) => {};
  socket.onmessage = ({ data }) => heard(JSON.parse(String(data)));
  socket.onclose = () => {
    closed = true;
    gone.resolve();
    heard({ type: "closed" });
  };
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  const ask = (message: object): Promise<Record<string, unknown>> =>
    new Promise((resolve) => {
      heard = resolve;
      socket.send(JSON.stringify(message));
    });
  await ask({ type: "session.open", model: MODEL, instruction: "fold the towel" });
  const observe = () => {
    for (const camera of [0, 1, 2]) socket.send(Buffer.concat([Uint8Array.of(camera), jpeg()]));
    return ask({ type: "observation", robot_state: jointState });
  };
  return { observe, isClosed: () => closed, gone: gone.promise };
}

test("a certificate is changed while requests and an episode run: nothing fails, new connections get the new one", async () => {
  await using dir = await temporaryFolder();
  const [files, second, third] = await Promise.all(
    ["first", "second", "third"].map((name) => makePair(dir.path, name)),
  );
  if (!files || !second || !third) throw new Error("three pairs are made");
  const at = await stage();
  const listener = ok(
    listen(at.app, { host: "127.0.0.1", port: 0 }, { certificate: ok(await readCertificate(files)) }),
  );
  expect(listener.url).toStartWith("https://127.0.0.1:");
  const renewal = new Renewal(files, listener, at.service.core.log, await certificateVersion(files));
  expect(await nameAt(listener.port)).toBe("first");

  const robot = await episode(at, listener.url);
  let load = true;
  const failures: unknown[] = [];
  let answered = 0;
  const requests = Array.from({ length: 6 }, async (_, client) => {
    while (load) {
      const init = { tls: { rejectUnauthorized: false }, keepalive: client % 2 === 0 };
      await fetch(`${listener.url}/healthz`, init).then(
        async (response) => {
          if ((await response.text()) === "" || !response.ok) failures.push(response.status);
          answered += 1;
        },
        (error: unknown) => failures.push(error),
      );
    }
  });
  let steps = 0;
  const episodes = (async () => {
    while (load) {
      const answer = await robot.observe();
      if (answer.type !== "action_chunk") failures.push(answer);
      steps += 1;
    }
  })();

  for (const [name, pair] of [
    ["second", second],
    ["third", third],
  ] as const) {
    const before = answered;
    await replacePair(pair, files);
    // The first look sees that they change, the second one that they have changed.
    await renewal.look();
    const changing = renewal.look();
    await changing;
    expect(await nameAt(listener.port)).toBe(name);
    expect(answered).toBeGreaterThan(before);
  }
  // A second service gets nothing of the port afterwards either.
  const other = listen((await stage()).app, { host: "127.0.0.1", port: listener.port });
  expect(other instanceof Problem && other.message).toContain("the port is taken");
  load = false;
  await Promise.all([...requests, episodes]);
  expect([failures, robot.isClosed()]).toEqual([[], false]);
  expect(steps).toBeGreaterThan(10);
  expect(await robot.observe()).toMatchObject({ type: "action_chunk" });
  // A request of a real route on the server that came later.
  const chunk = await fetch(`${listener.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${at.key}` },
    body: JSON.stringify(observation()),
    tls: { rejectUnauthorized: false },
  });
  expect(chunk.status).toBe(200);
  expect(at.logLines.filter((line) => line.startsWith("certificate changed"))).toHaveLength(2);
  await listener.stop();
  await robot.gone;
}, 60_000);

test("a wrong pair leaves the certificate in use, is told once, and the next right one is taken", async () => {
  await using dir = await temporaryFolder();
  const [files, second] = await Promise.all(["first", "second"].map((name) => makePair(dir.path, name)));
  if (!files || !second) throw new Error("two pairs are made");
  const logged: string[] = [];
  const log = {
    info: (event: string) => logged.push(event),
    error: (event: string, facts = {}) => logged.push(`${event} ${JSON.stringify(facts)}`),
  };
  const renewed: string[] = [];
  const renew = async ({ cert }: { cert: string }) => {
    renewed.push(cert);
  };
  const listener = { port: 1, renew };
  const renewal = new Renewal(files, listener as never, log as never, await certificateVersion(files));
  const look = async () => {
    for (let turn = 0; turn < 3; turn += 1) await renewal.look();
  };
  await look();
  expect([logged, renewed]).toEqual([[], []]);
  const right = await readFile(second.cert, "utf8");
  await writeFile(files.cert, right);
  await look();
  await look();
  expect([logged.length, renewed]).toEqual([1, []]);
  expect(logged[0]).toContain("is not the key of the first certificate");
  await writeFile(files.key, await readFile(second.key));
  await look();
  expect([logged.slice(1), renewed]).toEqual([["certificate changed"], [right]]);
});

test("a change that could not be made is tried again although the files stay as they are, and is told once", async () => {
  await using dir = await temporaryFolder();
  const [files, second] = await Promise.all(["first", "second"].map((name) => makePair(dir.path, name)));
  if (!files || !second) throw new Error("two pairs are made");
  const logged: string[] = [];
  const log = { info: (event: string) => logged.push(event), error: (event: string) => logged.push(event) };
  let fails = true;
  const renew = async () => (fails ? new Problem("no descriptor is free") : undefined);
  const renewal = new Renewal(files, { port: 1, renew } as never, log as never, await certificateVersion(files));
  await replacePair(second, files);
  for (let turn = 0; turn < 4; turn += 1) await renewal.look();
  expect(logged).toEqual(["certificate not changed"]);
  fails = false;
  await renewal.look();
  await renewal.look();
  expect(logged).toEqual(["certificate not changed", "certificate changed"]);
});

test("what is no pair of certificate and key is refused with the file's name", async () => {
  await using dir = await temporaryFolder();
  const [one, other] = await Promise.all(["one", "other"].map((name) => makePair(dir.path, name)));
  if (!one || !other) throw new Error("two pairs are made");
  const empty = join(dir.path, "empty");
  await writeFile(empty, "");
  const told = async (cert: string, key: string) => {
    const read = await readCertificate({ cert, key });
    return read instanceof Problem ? [read.exit, read.message] : "accepted";
  };
  expect(await told(one.cert, one.key)).toBe("accepted");
  expect([
    await told(`${empty}x`, one.key),
    await told(empty, one.key),
    await told(one.cert, empty),
    await told(one.cert, other.key),
  ]).toEqual([
    [2, `TENDON_TLS_CERT ${empty}x cannot be read: ENOENT`],
    [2, `TENDON_TLS_CERT ${empty} holds no certificate in PEM`],
    [2, `TENDON_TLS_KEY ${empty} holds no private key in PEM without a password`],
    [2, `TENDON_TLS_KEY ${other.key} is not the key of the first certificate in TENDON_TLS_CERT ${one.cert}`],
  ]);
});
