import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serveConfig } from "../../src/config/serve.ts";
import { Problem } from "../../src/std/problem.ts";
import { Place } from "../program/program.ts";

const NO_FLAGS = { dev: false, json: false };

const FILE = `
port = 8123
blobs = "s3://runs/lab"
s3_endpoint = "https://s3.example.org"

[oidc]
issuer = "https://login.example.org"
client_id = "tendon"
client_secret_env = "OIDC_SECRET"

[llm."llm-a-5.3:superfast"]
base_url = "http://127.0.0.1:9000/v1"
protocol = "chat"
model = "say \\"it\\""
api_key_env = "PROVIDER_KEY"

[robot."vendorB/molmoact2:yam"]
device = ["cpu", "webgpu:0"]
parked_mib_max = 7
replicas = 2
row_usd_per_mrow = "41.5"
`;

const SECRETS = {
  DATABASE_URL: "postgres://me:hidden-1@db.example.org/x",
  OIDC_SECRET: "hidden-5",
  AWS_ACCESS_KEY_ID: "hidden-2",
  AWS_SECRET_ACCESS_KEY: "hidden-3",
  PROVIDER_KEY: "hidden-4",
};

test("config prints a tendon.toml that means the same, with every default, where runs are kept, and no secret", async () => {
  await using place = await Place.make();
  const path = join(place.dir, "tendon.toml");
  await writeFile(path, FILE);
  const env = { ...SECRETS, TENDON_S3_REGION: "eu-1" };
  const { code, stdout, stderr } = await place.run(["config", "--config", path], env);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).not.toContain("hidden");
  expect(Bun.TOML.parse(stdout)).toMatchObject({
    host: "127.0.0.1",
    port: 8123,
    blobs: "s3://runs/lab",
    s3_endpoint: "https://s3.example.org",
    s3_region: "eu-1",
    s3_path_style: "on",
    usage_days: 400,
    oidc: {
      issuer: "https://login.example.org",
      client_id: "tendon",
      client_secret_env: "OIDC_SECRET",
      name: "single sign-on",
      scopes: "openid email",
    },
    robot: { "vendorF/picasso:yam": { prompt_usd_per_mtok: "0.500", row_usd_per_mrow: "40.000" } },
  });
  for (const name of ["DATABASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    expect(stdout).toContain(`# ${name} is set; it is not shown.`);

  const again = join(place.dir, "again.toml");
  await writeFile(again, stdout);
  const inside = { HOME: place.home, ...SECRETS };
  const first = await serveConfig({ ...NO_FLAGS, config: path }, { ...inside, TENDON_S3_REGION: "eu-1" });
  const second = await serveConfig({ ...NO_FLAGS, config: again }, inside);
  if (first instanceof Problem || second instanceof Problem) throw new Error("both are read");
  const { configPath: _, robot, ops, ...same } = first;
  expect(second).toMatchObject({ ...same });
  const id = "vendorB/molmoact2:yam";
  const { rates, ...served } = robot.get(id) ?? {};
  expect(second.robot.get(id)).toMatchObject({ ...served, rates: { ...rates, prompt: 500n, cachedPrompt: 50n } });
  // The test's own address of metrics.
  expect([ops.port, second.ops.port]).toEqual([9464, 0]);
});

test("config says where what is not in it comes from, and as JSON the same", async () => {
  await using place = await Place.make();
  const { stdout } = await place.run(["config"]);
  expect(stdout).toContain("# blobs: the bytes of runs are in the data folder");
  expect(stdout).toContain("# models: those that ship with the executable");
  expect(stdout).toContain(`data = "${place.home}/.local/share/tendon"`);
  const json = JSON.parse((await place.run(["config", "--json"])).stdout);
  expect(json).toMatchObject({ port: 8080, s3_region: "us-east-1", secrets: [] });
  expect((await place.run(["config"], { TENDON_BLOBS: "s3://x" })).code).toBe(2);
});
