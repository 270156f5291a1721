/** The link that `serve --dev` prints, followed as a browser follows it: page, form, redirect, cookie. */
import { expect, test } from "bun:test";
import { ScriptedProvider } from "../llm/scripted-provider.ts";
import { Place } from "./program.ts";

/** The fields of the page's form, as a person sees them filled in. */
function fieldsOf(page: string): Record<string, string> {
  const inputs = [...page.matchAll(/<input\b[^>]*>/g)].map(([input]) => input);
  const attribute = (input: string, name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(input)?.[1] ?? "";
  return Object.fromEntries(inputs.map((input) => [attribute(input, "name"), attribute(input, "value")]));
}

test("the printed link leads to dev@localhost itself: its credit, its key, and what that key has used", async () => {
  await using provider = await ScriptedProvider.start();
  await using place = await Place.make();
  const table = `[llm."llm-a-5.3:superfast"]\nbase_url = "${provider.url}"\nprotocol = "chat"\nmodel = "m"\n`;
  await Bun.write(place.path("tendon.toml"), table);
  const server = await place.serve(["--config", "tendon.toml"]);
  const { url, api_key } = server.ready;
  const link = String((server.ready as unknown as Record<string, unknown>).operator_link);
  provider.play({ kind: "answer", usage: { input: 12_345, cached: 345, output: 678 } });
  expect((await place.run(["ask", "Hello?"])).code).toBe(0);

  const welcome = await (await fetch(link)).text();
  const fields = fieldsOf(welcome);
  expect(fields).toMatchObject({ email: "dev@localhost" });
  expect(welcome).toMatch(/<input[^>]*name="email"[^>]*readonly/);
  // A person who writes another e-mail into the form still gets the account of the link.
  const body = new URLSearchParams({ ...fields, email: "other@example.org", password: "correct horse battery" });
  const headers = { "content-type": "application/x-www-form-urlencoded", origin: url };
  const answer = await fetch(`${url}/welcome`, { method: "POST", headers, body: body.toString(), redirect: "manual" });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/account"]);
  const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  const account = await (await fetch(`${url}/account`, { headers: { cookie } })).text();
  for (const words of [
    "dev@localhost",
    "$99.99",
    api_key.slice(0, 16),
    "Language models",
    "llm-a-5.3:superfast",
    "12,345",
  ])
    expect(account).toContain(words);
  const { data } = JSON.parse((await place.run(["admin", "account", "list", "--json"])).stdout);
  expect(data.map(({ email }: { email: string }) => email)).toEqual(["dev@localhost"]);

  // Once somebody can sign in, there is no link any more.
  expect(await server.stop()).toBe(0);
  const again = await place.serve(["--config", "tendon.toml"]);
  expect(again.ready).not.toContainKey("operator_link");
  expect((await fetch(link.replace(url, again.ready.url))).status).toBe(404);
  expect(await again.stop()).toBe(0);
}, 60_000);
