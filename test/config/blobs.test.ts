import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { S3Options } from "../../src/config/blobs.ts";
import type { Environment } from "../../src/config/environment.ts";
import { serveConfig } from "../../src/config/serve.ts";
import { Problem } from "../../src/std/problem.ts";
import { temporaryFolder } from "../store/temporary.ts";

/** The store of runs by this environment and this file, or the problem's exit and message. */
async function read(env: Environment, toml = ""): Promise<S3Options | undefined | string> {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "tendon.toml");
  await writeFile(path, toml);
  const config = await serveConfig({ config: path, dev: false, json: false }, { HOME: dir.path, ...env });
  return config instanceof Problem ? `${config.exit} ${config.message}` : config.blobs;
}

const AT = { TENDON_BLOBS: "s3://runs" };
const AWS: S3Options = {
  kind: "s3",
  bucket: "runs",
  prefix: "",
  endpoint: undefined,
  region: "us-east-1",
  pathStyle: false,
  credentials: undefined,
};

const OTHER: S3Options = { ...AWS, endpoint: "http://127.0.0.1:9000", pathStyle: true };
const FILE =
  'blobs = "s3://file"\ns3_region = "eu-central-1"\ns3_endpoint = "https://s3.example.org"\ns3_path_style = "off"\n';
const OF_FILE: S3Options = { ...AWS, bucket: "file", region: "eu-central-1", endpoint: "https://s3.example.org" };

const CASES: readonly [what: string, env: Environment, expected: S3Options | undefined, toml?: string][] = [
  ["without TENDON_BLOBS runs are in the data folder", {}, undefined],
  [
    "an empty TENDON_BLOBS is none, whatever else is set",
    { TENDON_BLOBS: "", AWS_ACCESS_KEY_ID: "a", TENDON_S3_REGION: "eu-1" },
    undefined,
  ],
  ["a bucket alone is AWS in us-east-1, with the machine's role", { TENDON_BLOBS: "s3://runs" }, AWS],
  ["a bucket with a slash behind it is the same", { TENDON_BLOBS: "s3://runs/" }, AWS],
  ["a prefix lies behind the bucket", { TENDON_BLOBS: "s3://runs/lab/7" }, { ...AWS, prefix: "lab/7" }],
  ["a prefix has no slashes at its ends", { TENDON_BLOBS: "s3://runs//lab/7/" }, { ...AWS, prefix: "lab/7" }],
  ["another store has the bucket in the path", { ...AT, TENDON_S3_ENDPOINT: "http://127.0.0.1:9000" }, OTHER],
  [
    "another store has the bucket in its name where that is said",
    { ...AT, TENDON_S3_ENDPOINT: "http://127.0.0.1:9000", TENDON_S3_PATH_STYLE: "off" },
    { ...OTHER, pathStyle: false },
  ],
  [
    "AWS has the bucket in the path where that is said",
    { ...AT, TENDON_S3_PATH_STYLE: "on" },
    { ...AWS, pathStyle: true },
  ],
  ["the file says it too, without a variable", {}, OF_FILE, FILE],
  [
    "variables win over the file",
    { TENDON_BLOBS: "s3://variable", TENDON_S3_REGION: "us-2" },
    { ...OF_FILE, bucket: "variable", region: "us-2" },
    FILE,
  ],
];
for (const [what, env, expected, toml] of CASES) {
  test(what, async () => {
    expect(await read(env, toml)).toEqual(expected);
  });
}

test("credentials come from the environment alone, both or none", async () => {
  const env = { ...AT, AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };
  const credentials = { accessKeyId: "id", secretAccessKey: "secret", sessionToken: undefined };
  expect(await read(env)).toEqual({ ...AWS, credentials });
  expect(await read({ ...env, AWS_SESSION_TOKEN: "t" })).toEqual({
    ...AWS,
    credentials: { ...credentials, sessionToken: "t" },
  });
  const half = /^2 only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both, or none$/;
  expect(await read({ ...env, AWS_SECRET_ACCESS_KEY: "" })).toMatch(half);
  expect(await read({ ...env, AWS_ACCESS_KEY_ID: "" })).toMatch(half);
  expect(await read({}, 'aws_access_key_id = "id"')).toMatch(/^2 .*unknown key 'aws_access_key_id'/);
});

test("what is no bucket of a store is refused, and said what is", async () => {
  const bad = "x|s3://|s3://R|s3://ab|s3:/runs|https://runs|s3://runs?a|s3://runs/a b|s3://runs#|gs://runs".split("|");
  for (const address of bad) {
    expect([address, await read({ TENDON_BLOBS: address })]).toEqual([
      address,
      expect.stringMatching(/^2 TENDON_BLOBS must be s3:\/\/BUCKET or s3:\/\/BUCKET\/PREFIX; unset it/),
    ]);
  }
  const of = (name: string, value: string) => read({ ...AT, [name]: value });
  expect(await of("TENDON_S3_ENDPOINT", "127.0.0.1:9000")).toMatch(/^2 TENDON_S3_ENDPOINT must be an http/);
  expect(await of("TENDON_S3_ENDPOINT", "http://id:key@store")).toMatch(/^2 TENDON_S3_ENDPOINT must be an http/);
  expect(await of("TENDON_S3_PATH_STYLE", "yes")).toMatch(/^2 TENDON_S3_PATH_STYLE must be "on" or "off"/);
});
