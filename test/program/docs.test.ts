/** The documentation as its reader has it: without a key, and from the executable without a file beside it. */
import { expect, test } from "bun:test";
import { chunkOf, Place } from "./program.ts";

test("openapi.json and docs are served without a key, and the document's example gets a chunk", async () => {
  await using place = await Place.make();
  const server = await place.serve();
  const { url } = server.ready;
  const paths = ["/openapi.json", "/docs", "/docs/episodes", "/docs/language-models", "/docs/robot-runs"] as const;
  const [json, page, episodes, languageModels, robotRuns] = await Promise.all(
    paths.map((path) => fetch(`${url}${path}`)),
  );
  if (!json || !page || !episodes || !languageModels || !robotRuns) throw new Error("five answers");
  const statuses = [json, page, episodes, languageModels, robotRuns].map(({ status }) => status);
  expect(statuses).toEqual([200, 200, 200, 200, 200]);
  expect(await robotRuns.text()).toContain("/v1/robot/runs/lab-7/fold-1");
  expect(await languageModels.text()).toContain("client.responses.create(");
  // The clients lie in the executable as text.
  expect(await episodes.text()).toMatch(/websockets\.sync\.client[\s\S]*new WebSocket\(/);
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
