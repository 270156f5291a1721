/** A failed request to an S3 store. */

export class S3Failure extends Error {
  /** The name of the error, from S3 or from a system call. */
  readonly kind: string;
  /** The HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  /** The code of a full disk, if the store is full. */
  readonly code: "ENOSPC" | undefined;
  /** The region of the bucket, if the store names another one. */
  readonly region: string | undefined;

  constructor(operation: string, error: unknown, silentMs?: number) {
    const { name, code, message, $metadata, $response, Region } = error as Partial<SdkError>;
    const status = $metadata?.httpStatusCode ?? $response?.statusCode;
    const kind = silentMs === undefined ? (status === undefined && code) || name || "Error" : "Silent";
    const where = status === undefined ? kind : `${kind} (${status})`;
    const text = message?.replace(`${kind}: `, "") ?? "no message";
    super(
      `S3 ${operation}: ${silentMs === undefined ? `${where}: ${text}` : `no sign of life for ${silentMs / 1000} s`}`,
    );
    this.kind = kind;
    this.status = status;
    this.code = status === 507 || FULL.test(kind) ? "ENOSPC" : undefined;
    this.region = Region ?? $response?.headers?.["x-amz-bucket-region"];
  }

  /** Whether the same request may succeed soon. A silent store has used up its time. */
  get passing(): boolean {
    if (this.code !== undefined || this.kind === "Silent" || this.kind === NO_CREDENTIALS) return false;
    if (CERTIFICATE.test(this.kind)) return false;
    if (this.status === undefined || this.status === 429 || PASSING.test(this.kind)) return true;
    return this.status >= 500 && this.status !== 501;
  }

  get absent(): boolean {
    return ["NoSuchKey", "NotFound"].includes(this.kind);
  }
}

/** The part of the client library's errors that is used. */
interface SdkError {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly Region: string;
  readonly $metadata: { readonly httpStatusCode?: number };
  readonly $response: { readonly statusCode?: number; readonly headers?: Readonly<Record<string, string>> };
}

export const NO_CREDENTIALS = "CredentialsProviderError";

/** Names of errors of the TLS library. */
export const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|ALTNAME/;

/** Names of the errors of a full disk or an exhausted quota. */
const FULL = /QuotaExceeded|StorageFull|InsufficientStorage|InsufficientCapacity/;

/** Refusals with a client's status that may pass the next time: damaged bytes, clocks, load. */
const PASSING = /^(BadDigest|XAmzContent(SHA256|Checksum)Mismatch|RequestTime(out|TooSkewed)|SlowDown|IncompleteBody)$/;
