/** A robot's first chunk, as a newcomer gets it: serve, sample, curl, act. */
import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import type { ActionChunk } from "../../src/client/chunk.ts";
import { chunkOf, Place } from "./program.ts";

function expectChunk({ actions, step }: { actions: ActionChunk["actions"]; step: number }): void {
  expect(step).toBe(0);
  expect(actions.length).toBe(30);
  for (const row of actions) {
    expect(row.length).toBe(14);
    expect(row.every(Number.isFinite)).toBe(true);
  }
}

test("what sample writes gives a 30 × 14 finite chunk by HTTP and by act, with a plot; HOME holds tendon's files only", async () => {
  await using place = await Place.make();
  expect(await place.run(["sample", "demo"])).toMatchObject({ code: 0 });
  const server = await place.serve();

  const response = await server.post(await Bun.file(place.path("demo/request.json")).text());
  expect(response.status).toBe(200);
  expect(response.headers.get("x-tendon-bundle")).toBe("reference");
  expectChunk(await chunkOf(response));

  const images = ["top", "left", "right"].flatMap((camera) => ["--image", `${camera}=demo/${camera}.jpg`]);
  const request = ["--model", "vendorB/molmoact2:yam", "--instruction", "pick up the block", ...images];
  const acted = await place.run(["act", ...request, "--state", "demo/state.json", "--plot", "chunk.svg", "--json"], {
    TENDON_BASE_URL: server.ready.url,
  });
  expect(acted).toMatchObject({ code: 0 });
  expectChunk(JSON.parse(acted.stdout));
  const svg = await Bun.file(place.path("chunk.svg")).text();
  expect(svg.match(/<(path|polyline)[^>]*class="trace/g)?.length ?? 0).toBe(14);

  // The key that --dev saved is what act used and what token prints; without one the exit code is 3.
  expect(await place.run(["token"])).toMatchObject({ code: 0, stdout: `${server.ready.api_key}\n` });
  expect((await place.run(["token"], { XDG_CONFIG_HOME: place.path("none") })).code).toBe(3);

  expect(await server.stop()).toBe(0);
  const files = (await readdir(place.home, { recursive: true })).filter((path) => !path.startsWith(".bun"));
  const foreign = files.filter(
    (path) => !/^\.(cache|config|local)$|^\.local\/share$|^\.(cache|config|local\/share)\/tendon/.test(path),
  );
  expect(foreign).toEqual([]);
});
