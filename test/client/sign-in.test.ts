import { expect, test } from "bun:test";
import { join } from "node:path";
import { type Credentials, writeCredentials } from "../../src/account/credentials.ts";
import { keyInUse, signedIn } from "../../src/client/sign-in.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { temporaryFolder } from "../store/temporary.ts";

test("a saved key goes to the service that it is for, and from this machine to this machine", async () => {
  await using home = await temporaryFolder();
  const config = join(home.path, "config");
  const env = { XDG_CONFIG_HOME: config };
  const save = (file: Credentials) => writeCredentials(join(config, "tendon/credentials.json"), file);
  const local = ["http://localhost:1", "http://127.0.0.1:2/", "http://[::1]:3"];
  const far = ["https://robots.example.org", "https://robots.example.org:8443", "http://robots.example.org"];
  const sends = async (urls: string[]) =>
    Promise.all(urls.map(async (url) => !((await signedIn(url, env)) instanceof Problem)));
  await save({ api_key: "k", base_url: "http://127.0.0.1:8080" });
  expect([await sends(local), await sends(far)]).toEqual([
    [true, true, true],
    [false, false, false],
  ]);
  expect(await signedIn(far[0], env)).toMatchObject({
    exit: EXIT.notSignedIn,
    message: expect.stringContaining("TENDON_API_KEY"),
  });
  expect(await signedIn("http://127.0.0.1.example.org", env)).toBeInstanceOf(Problem);
  await save({ api_key: "k", base_url: "https://robots.example.org/" });
  expect([await sends(local), await sends(far)]).toEqual([
    [false, false, false],
    [true, false, false],
  ]);
  expect(await signedIn(undefined, env)).toEqual({
    url: "https://robots.example.org",
    apiKey: "k",
    source: "credentials",
  });
  await save({ api_key: "k" });
  expect([await sends(local), await sends(far)]).toEqual([
    [true, true, true],
    [false, false, false],
  ]);
  // A key from the environment goes where its owner says.
  expect(await signedIn(far[0], { ...env, TENDON_API_KEY: "e" })).toEqual({
    url: far[0] ?? "",
    apiKey: "e",
    source: "environment",
  });
});

test("the key in use needs no address", async () => {
  await using home = await temporaryFolder();
  expect(await keyInUse({ TENDON_BASE_URL: "localhost:1", TENDON_API_KEY: "k" })).toBe("k");
  expect(await keyInUse({ XDG_CONFIG_HOME: home.path })).toMatchObject({ exit: EXIT.notSignedIn });
});
