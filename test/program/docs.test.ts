/** The documentation as its reader has it: without a key, and from the executable without a file beside it. */
import { expect, test } from "bun:test";
import { chunkOf, Place } from "./program.ts";

test("openapi.json and docs are served without a key, and the document's example gets a chunk", async () => {
  await using place = await Place.make();
  const server = await place.serve();
  const { url } = server.ready;
  const [json, page] = await Promise.all([fetch(`${url}/openapi.json`), fetch(`${url}/docs`)]);
  expect([json.status, page.status]).toEqual([200, 200]);
  const document = (await json.json()) as {
    openapi: string;
    paths: Record<string, unknown>;
    components: { examples: { observation: { value: object } } };
  };
  expect(document.openapi).toMatch(/^3\.1\./);
  expect(Object.keys(document.paths)).toContain("/v1/chat/completions");
  expect(await page.text()).toContain("<code>/v1/chat/completions</code>");

  const response = await server.post(JSON.stringify(document.components.examples.observation.value));
  expect(response.status).toBe(200);
  const { actions, step } = await chunkOf(response);
  expect([actions.length, actions[0]?.length, step]).toEqual([30, 14, 0]);
  expect(await server.stop()).toBe(0);
});
