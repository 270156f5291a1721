/** One bucket of an S3 store: its client, the keys of blobs, the time that a request may take, and its transport. */
import {
  type $Command,
  S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from "@aws-sdk/client-s3";
import type { S3Options } from "../../../config/blobs.ts";
import { attempted, type Patience, type Watch } from "./attempt.ts";

/** Bounds that tests make smaller. */
export interface S3Bounds extends Patience {
  readonly pageKeys: number;
}

const BOUNDS: S3Bounds = { silentMs: 10_000, totalMs: 15 * 60_000, pageKeys: 1000 };

/** The option of the client that ends a request. */
interface Abort {
  readonly abortSignal: AbortSignal;
}

export class Store {
  readonly client: S3Client;
  /** Its name is that of the client's requests. */
  readonly Bucket: string;
  /** The prefix of every key: empty, or with a slash at its end. */
  readonly folder: string;
  readonly bounds: S3Bounds;

  constructor(options: S3Options, bounds: Partial<S3Bounds>) {
    this.Bucket = options.bucket;
    this.folder = options.prefix === "" ? "" : `${options.prefix}/`;
    this.bounds = { ...BOUNDS, ...bounds };
    this.client = clientOf(options);
  }

  /** Makes a request, and repeats it a few times where that can help. */
  attempt<T>(
    operation: string,
    send: (abort: Abort, watch: Watch) => Promise<T>,
    silentMs = this.bounds.silentMs,
  ): Promise<T> {
    return attempted(operation, { ...this.bounds, silentMs }, (watch) => send({ abortSignal: watch.signal }, watch));
  }

  /** Makes a request without a large body in either direction. */
  send<Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
    operation: string,
    command: $Command<Input, Output, S3ClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes>,
    silentMs?: number,
  ): Promise<Output> {
    return this.attempt(operation, (abort) => this.client.send(command, abort), silentMs);
  }

  at(id: string): { Bucket: string; Key: string } {
    return { Bucket: this.Bucket, Key: this.folder + id };
  }

  idOf(key = ""): string {
    return key.slice(this.folder.length);
  }
}

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

function clientOf({ endpoint, region, pathStyle, credentials }: S3Options): S3Client {
  return new S3Client({
    region,
    forcePathStyle: pathStyle,
    // Without an endpoint the store is that of AWS, not one that a variable or a file of another program names.
    ...(endpoint === undefined ? { ignoreConfiguredEndpointUrls: true } : { endpoint }),
    // Without credentials the library uses those of the machine's role.
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
    // The library would write to the console; callers report failures.
    logger: SILENT,
  });
}

/** A signed request as the client library passes it to a transport. */
interface SignedRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
}

/**
 * Sends a request with Bun's fetch. The library's own transport is Node's `http`. It takes more memory for a body, and its time-outs
 * do not end a body that stops half-way. The library calls `handle`; the other two functions of the interface do nothing.
 */
const fetchTransport = {
  handle: async (request: SignedRequest, { abortSignal }: { abortSignal?: AbortSignal } = {}) => {
    const { method, headers, body } = request;
    const response = await fetch(addressOf(request), {
      method,
      // The bytes must be the stored ones, and a redirect was not signed.
      headers: { ...headers, "accept-encoding": "identity" },
      decompress: false,
      redirect: "manual",
      // The watch of the request ends it; the default of fetch would end a long one.
      timeout: false,
      ...(abortSignal && { signal: abortSignal }),
      ...(body !== undefined && method !== "GET" && method !== "HEAD" && { body }),
    } as RequestInit);
    return {
      response: {
        statusCode: response.status,
        reason: response.statusText,
        headers: Object.fromEntries(response.headers),
        body: response.body ?? new Uint8Array(),
      },
    };
  },
  updateHttpClientConfig: () => {},
  httpHandlerConfigs: () => ({}),
};

function addressOf({ protocol, hostname, port, path, query = {} }: SignedRequest): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => {
    const values: readonly (string | null)[] = Array.isArray(value) ? value : [value as string | null];
    return values.map((one) => (one === null ? encoded(name) : `${encoded(name)}=${encoded(one)}`));
  });
  const search = pairs.length === 0 ? "" : `?${pairs.join("&")}`;
  return `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path}${search}`;
}

/** The signature has more characters escaped than `encodeURIComponent` escapes. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
