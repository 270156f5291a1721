/** One bucket of an S3 store: its client, where the blobs lie in it, and how long a request may take. */
import { S3Client } from "@aws-sdk/client-s3";
import type { S3Options } from "../../../config/blobs.ts";
import { attempted, type Patience, type Watch } from "./attempt.ts";
import { fetchTransport } from "./transport.ts";

/** What tests make smaller. */
export interface S3Bounds extends Patience {
  /** Keys in a page of a list. */
  readonly pageKeys: number;
}

const BOUNDS: S3Bounds = { silentMs: 10_000, totalMs: 15 * 60_000, pageKeys: 1000 };

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/** As a call of the client takes it. */
export interface Abort {
  readonly abortSignal: AbortSignal;
}

export class Store {
  readonly client: S3Client;
  /** In the words of the client. */
  readonly Bucket: string;
  /** Before every id; empty, or with a slash at its end. */
  readonly folder: string;
  readonly bounds: S3Bounds;

  constructor(options: S3Options, bounds: Partial<S3Bounds>) {
    this.Bucket = options.bucket;
    this.folder = options.prefix === "" ? "" : `${options.prefix}/`;
    this.bounds = { ...BOUNDS, ...bounds };
    this.client = clientOf(options);
  }

  /** Sends a request, a few times if need be. */
  attempt<T>(
    operation: string,
    send: (abort: Abort, watch: Watch) => Promise<T>,
    silentMs = this.bounds.silentMs,
  ): Promise<T> {
    return attempted(operation, { ...this.bounds, silentMs }, (watch) => send({ abortSignal: watch.signal }, watch));
  }

  at(id: string): { Bucket: string; Key: string } {
    return { Bucket: this.Bucket, Key: this.folder + id };
  }

  idOf(key = ""): string {
    return key.slice(this.folder.length);
  }
}

function clientOf({ endpoint, region, pathStyle, credentials }: S3Options): S3Client {
  return new S3Client({
    region,
    forcePathStyle: pathStyle,
    // Without one of ours: that of AWS, not one that a variable or a file of another program names.
    ...(endpoint === undefined ? { ignoreConfiguredEndpointUrls: true } : { endpoint }),
    // Without those of ours the library looks for what the machine has by its role.
    ...(credentials && {
      credentials: {
        accessKeyId: credentials.accessKeyId,
        secretAccessKey: credentials.secretAccessKey,
        ...(credentials.sessionToken !== undefined && { sessionToken: credentials.sessionToken }),
      },
    }),
    maxAttempts: 1,
    defaultsMode: "standard",
    expectContinueHeader: false,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: fetchTransport,
    // What fails is told by whoever asked. Without this the library writes to the console.
    logger: SILENT,
  });
}
