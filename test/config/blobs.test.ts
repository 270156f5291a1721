import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { S3Options } from "../../src/config/blobs.ts";
import type { Environment } from "../../src/config/environment.ts";
import { serveConfig } from "../../src/config/serve.ts";
import { Problem } from "../../src/std/problem.ts";
import { temporaryFolder } from "../store/temporary.ts";

/** Where runs are kept by this environment and this file, or the problem's exit and message. */
async function read(env: Environment, toml = ""): Promise<S3Options | undefined | string> {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "tendon.toml");
  await writeFile(path, toml);
  const config = await serveConfig({ config: path, dev: false, json: false }, { HOME: dir.path, ...env });
  return config instanceof Problem ? `${config.exit} ${config.message}` : config.blobs;
}

const AWS: S3Options = {
  kind: "s3",
  bucket: "runs",
  prefix: "",
  endpoint: undefined,
  region: "us-east-1",
  pathStyle: false,
  credentials: undefined,
};

test("without TENDON_BLOBS runs are in the data folder, whatever else is set", async () => {
  expect(await read({})).toBeUndefined();
  expect(await read({ TENDON_BLOBS: "", AWS_ACCESS_KEY_ID: "a", TENDON_S3_REGION: "eu-1" })).toBeUndefined();
});

test("a bucket alone is AWS in us-east-1, with the machine's role", async () => {
  expect(await read({ TENDON_BLOBS: "s3://runs" })).toEqual(AWS);
  expect(await read({ TENDON_BLOBS: "s3://runs/" })).toEqual(AWS);
});

test("a prefix has no slashes at its ends", async () => {
  expect(await read({ TENDON_BLOBS: "s3://runs/lab/7" })).toEqual({ ...AWS, prefix: "lab/7" });
  expect(await read({ TENDON_BLOBS: "s3://runs//lab/7/" })).toEqual({ ...AWS, prefix: "lab/7" });
});

test("another store has the bucket in the path, unless it is said otherwise", async () => {
  const at = { TENDON_BLOBS: "s3://runs", TENDON_S3_ENDPOINT: "http://127.0.0.1:9000" };
  const other = { ...AWS, endpoint: "http://127.0.0.1:9000", pathStyle: true };
  expect(await read(at)).toEqual(other);
  expect(await read({ ...at, TENDON_S3_PATH_STYLE: "off" })).toEqual({ ...other, pathStyle: false });
  expect(await read({ TENDON_BLOBS: "s3://runs", TENDON_S3_PATH_STYLE: "on" })).toEqual({ ...AWS, pathStyle: true });
});

test("the file says it too, and variables win over it", async () => {
  const toml =
    'blobs = "s3://file"\ns3_region = "eu-central-1"\ns3_endpoint = "https://s3.example.org"\ns3_path_style = "off"\n';
  const file = { ...AWS, bucket: "file", region: "eu-central-1", endpoint: "https://s3.example.org" };
  expect(await read({}, toml)).toEqual(file);
  expect(await read({ TENDON_BLOBS: "s3://variable", TENDON_S3_REGION: "us-2" }, toml)).toEqual({
    ...file,
    bucket: "variable",
    region: "us-2",
  });
});

test("credentials come from the environment alone, both or none", async () => {
  const env = { TENDON_BLOBS: "s3://runs", AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };
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
  const bad = [
    "x",
    "s3://",
    "s3://R",
    "s3://ab",
    "s3:/runs",
    "https://runs",
    "s3://runs?a",
    "s3://runs/a b",
    "s3://runs#",
    "gs://runs",
  ];
  for (const address of bad) {
    expect([address, await read({ TENDON_BLOBS: address })]).toEqual([
      address,
      expect.stringMatching(/^2 TENDON_BLOBS must be s3:\/\/BUCKET or s3:\/\/BUCKET\/PREFIX; unset it/),
    ]);
  }
  const of = (name: string, value: string) => read({ TENDON_BLOBS: "s3://runs", [name]: value });
  expect(await of("TENDON_S3_ENDPOINT", "127.0.0.1:9000")).toMatch(/^2 TENDON_S3_ENDPOINT must be an http/);
  expect(await of("TENDON_S3_ENDPOINT", "http://id:key@store")).toMatch(/^2 TENDON_S3_ENDPOINT must be an http/);
  expect(await of("TENDON_S3_PATH_STYLE", "yes")).toMatch(/^2 TENDON_S3_PATH_STYLE must be "on" or "off"/);
});
