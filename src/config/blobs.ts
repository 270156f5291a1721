/** The place of the bytes of robots' runs: the data folder, or an S3-compatible store. */
import { type Static, type TObject, Type } from "@sinclair/typebox";
import { EXIT, Problem } from "../std/problem.ts";
import type { Environment } from "./environment.ts";
import { httpAddress, oneOf, text } from "./fields.ts";

/** An S3-compatible store: `s3://bucket/prefix`. */
export interface S3Options {
  readonly kind: "s3";
  readonly bucket: string;
  /** Without slashes at its ends; empty: the whole bucket. */
  readonly prefix: string;
  /** Undefined: that of AWS in the region. */
  readonly endpoint: string | undefined;
  readonly region: string;
  /** The bucket in the path instead of the host name. */
  readonly pathStyle: boolean;
  /** Secrets. Undefined: those that the machine has by its role. */
  readonly credentials: S3Credentials | undefined;
}

interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

/** Keys at the top of the file, beside those of serve.ts. */
export const BLOB_SETTINGS = {
  blobs: Type.Optional(text()),
  s3_endpoint: Type.Optional(httpAddress()),
  s3_region: text("us-east-1"),
  s3_path_style: Type.Optional(oneOf(["on", "off"])),
};

type Settings = Static<TObject<typeof BLOB_SETTINGS>>;

/** Names of buckets as AWS has them; other stores allow no more. */
const ADDRESS = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9!_.*'()/-]*))?$/;

/** Undefined: in the data folder. */
export function blobOptions(settings: Settings, env: Environment): S3Options | undefined | Problem {
  const { blobs, s3_endpoint: endpoint, s3_region: region, s3_path_style: style } = settings;
  if (blobs === undefined) return undefined;
  const [, bucket, prefix = ""] = ADDRESS.exec(blobs) ?? [];
  if (bucket === undefined) {
    return new Problem(
      "TENDON_BLOBS must be s3://BUCKET or s3://BUCKET/PREFIX; unset it to keep runs in the data folder",
      EXIT.usage,
    );
  }
  const accessKeyId = env.AWS_ACCESS_KEY_ID || undefined;
  const secretAccessKey = env.AWS_SECRET_ACCESS_KEY || undefined;
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) {
    return new Problem("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both, or none", EXIT.usage);
  }
  const sessionToken = env.AWS_SESSION_TOKEN || undefined;
  return {
    kind: "s3",
    bucket,
    prefix: prefix.replace(/^\/+|\/+$/g, ""),
    endpoint,
    region,
    // Stores other than AWS seldom have a host name for each bucket.
    pathStyle: style === undefined ? endpoint !== undefined : style === "on",
    credentials: accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey, sessionToken } : undefined,
  };
}
