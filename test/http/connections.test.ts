/** Connections have a cap per address and in all; what Bun itself does with connections that send no request. */
import { expect, test } from "bun:test";
import { once } from "node:events";
import { createConnection } from "node:net";
import { watchConnections } from "../../src/http/connection-watch.ts";
import { Connections } from "../../src/http/connections.ts";
import { LOOPBACK, Networks } from "../../src/std/networks.ts";
import { Problem } from "../../src/std/problem.ts";
import { FakeClock } from "../std/fake-clock.ts";

interface Client {
  ended: boolean;
  ask(): Promise<string>;
  leave(): void;
}

/** A connection from one of this machine's own addresses, all of 127.0.0.0/8. */
async function connect(port: number, from: string): Promise<Client> {
  const socket = createConnection({ host: "127.0.0.1", port, localAddress: from });
  const client: Client = {
    ended: false,
    ask: async () => {
      socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      const [bytes] = await once(socket, "data");
      return String(bytes);
    },
    leave: () => socket.destroy(),
  };
  socket.on("error", () => {});
  socket.on("close", () => {
    client.ended = true;
  });
  socket.on("end", () => {
    client.ended = true;
  });
  await once(socket, "connect");
  return client;
}

async function stand(bounds: { max: number; networkMax: number }, trusted = "none") {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, it) => Response.json(it.requestIP(request)),
  });
  const port = server.port ?? 0;
  const watch = await watchConnections(port);
  if (watch instanceof Problem) throw new Error(watch.message);
  const logged: object[] = [];
  const log = { info: (event: string, facts = {}) => logged.push({ event, ...facts }), error: () => {} };
  const deps = { clock: new FakeClock(), log: log as never, proxies: new Networks(trusted) };
  const connections = new Connections(deps, watch, bounds, new Map());
  const until = async (met: () => boolean) => {
    while (!met()) {
      connections.look();
      await Bun.sleep(5);
    }
  };
  return {
    port,
    connections,
    logged,
    until,
    [Symbol.asyncDispose]: async () => {
      watch.close();
      await server.stop(true);
    },
  };
}

test("connections over the cap of one address are ended, those that were there before and other addresses stay", async () => {
  await using at = await stand({ max: 100, networkMax: 3 });
  const first = await Promise.all([1, 2, 3].map(() => connect(at.port, "127.0.0.2")));
  await at.until(() => at.connections.size === 3);
  const more = await Promise.all([1, 2].map(() => connect(at.port, "127.0.0.2")));
  const others = await Promise.all([1, 2, 3].map(() => connect(at.port, "127.0.0.3")));
  await at.until(() => more.every(({ ended }) => ended));
  await at.until(() => at.connections.size === 6);
  expect([...first, ...others].map(({ ended }) => ended)).toEqual(Array(6).fill(false));
  for (const one of [...first, ...others]) expect(await one.ask()).toStartWith("HTTP/1.1 200");
  expect(at.logged[0]).toMatchObject({ event: "connections ended", reason: "too many are open" });
  // A place that comes free is taken by the next one.
  first[0]?.leave();
  await at.until(() => at.connections.size === 5);
  const next = await connect(at.port, "127.0.0.2");
  await at.until(() => at.connections.size === 6);
  expect(await next.ask()).toStartWith("HTTP/1.1 200");
});

test("networks that hold all connections there may be do not keep others out: who has most gives one back", async () => {
  await using at = await stand({ max: 6, networkMax: 3 });
  const hoarders = await Promise.all(
    ["127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.3"].map((from) =>
      connect(at.port, from),
    ),
  );
  await at.until(() => at.connections.size === 6);
  const robots = [await connect(at.port, "127.0.0.4"), await connect(at.port, "127.0.0.5")];
  await at.until(() => hoarders.filter(({ ended }) => ended).length === 2);
  await at.until(() => at.connections.size === 6);
  for (const robot of robots) expect(await robot.ask()).toStartWith("HTTP/1.1 200");
  expect(robots.map(({ ended }) => ended)).toEqual([false, false]);
});

test("the cap of one address is none for a trusted proxy, which brings many clients; the cap of all holds", async () => {
  await using at = await stand({ max: 6, networkMax: 2 }, LOOPBACK);
  const first = await Promise.all([1, 2, 3, 4, 5, 6].map(() => connect(at.port, "127.0.0.2")));
  await at.until(() => at.connections.size === 6);
  const late = await connect(at.port, "127.0.0.9");
  await at.until(() => first.some(({ ended }) => ended));
  await at.until(() => at.connections.size === 6);
  expect([first.filter(({ ended }) => ended).length, late.ended]).toEqual([1, false]);
});
