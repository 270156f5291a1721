/** `README.md` shows a configuration that works, and links that lead somewhere. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { serveConfig } from "../../src/config/serve.ts";
import { planProviders } from "../../src/service/providers.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Problem } from "../../src/std/problem.ts";
import { temporaryFolder } from "../store/temporary.ts";

const ROOT = resolve(import.meta.dir, "../..");
const text = await Bun.file(join(ROOT, "README.md")).text();

test("its tables of tendon.toml name providers that serve takes", async () => {
  await using folder = await temporaryFolder();
  const tables = [...text.matchAll(/^```toml\n([\s\S]*?)^```$/gm)].map(([, table = ""]) => table);
  expect(tables.length).toBeGreaterThan(0);
  for (const table of tables) {
    const path = join(folder.path, "tendon.toml");
    await Bun.write(path, table);
    const secrets = [...table.matchAll(/^client_secret_env = "(\w+)"/gm)].map(([, name = ""]) => [name, "a secret"]);
    const env = { HOME: folder.path, ...Object.fromEntries(secrets) };
    const config = await serveConfig({ config: path, dev: false, json: false }, env);
    if (config instanceof Problem) throw new Error(config.message);
    expect(planProviders(config, systemClock)).not.toBeInstanceOf(Problem);
  }
});

test("every heading and every file that it names is there", () => {
  const headings = [...text.matchAll(/^##? (.+)$/gm)].map(([, title = ""]) => title.toLowerCase().replaceAll(" ", "-"));
  const anchors = [...text.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = ""]) => anchor);
  expect(anchors.filter((anchor) => !headings.includes(anchor))).toEqual([]);
  const paths = [...text.matchAll(/`((?:src|docs|native|bench|test|models)\/[\w./-]*)`/g)].map(([, path = ""]) => path);
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
