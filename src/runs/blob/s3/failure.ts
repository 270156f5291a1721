/** A failed request to an S3 store, and what an operator can do about it. */
import type { S3Options } from "../../../config/blobs.ts";

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

const NO_CREDENTIALS = "CredentialsProviderError";

/** Names of errors of the TLS library. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|ALTNAME/;

/** Names of the errors of a full disk or an exhausted quota. */
const FULL = /QuotaExceeded|StorageFull|InsufficientStorage|InsufficientCapacity/;

/** Refusals with a client's status that may pass the next time: damaged bytes, clocks, load. */
const PASSING = /^(BadDigest|XAmzContent(SHA256|Checksum)Mismatch|RequestTime(out|TooSkewed)|SlowDown|IncompleteBody)$/;

/** For the operator: what failed, a semicolon, and what to do. */
export function advice(failure: S3Failure, { bucket, endpoint, region, credentials }: S3Options): string {
  const store = endpoint ?? `the S3 store of AWS in ${region}`;
  const { kind, status } = failure;
  if (kind === NO_CREDENTIALS) {
    return `there are no credentials for ${store}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role`;
  }
  if (CERTIFICATE.test(kind)) {
    return `the certificate of ${store} is not trusted (${kind}); name its authority's file in NODE_EXTRA_CA_CERTS, or correct it`;
  }
  if (status === undefined) {
    return `${store} does not answer (${failure.message}); check that it runs, and TENDON_S3_ENDPOINT`;
  }
  if (kind === "NoSuchBucket") {
    return `${store} has no bucket "${bucket}"; create it, or name another in TENDON_BLOBS`;
  }
  // The second name is that of versitygw.
  if (["InvalidAccessKeyId", "XAdminUserNotFound"].includes(kind)) {
    return `${store} does not know the access key ${credentials?.accessKeyId ?? "of this machine's role"}; correct AWS_ACCESS_KEY_ID`;
  }
  if (kind === "SignatureDoesNotMatch") {
    return `${store} refuses the signature; correct AWS_SECRET_ACCESS_KEY, which does not belong to the access key`;
  }
  if (/^(ExpiredToken|InvalidToken)/.test(kind)) {
    return `${store} refuses the session's credentials (${kind}); renew them, AWS_SESSION_TOKEN too`;
  }
  if (["PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"].includes(kind)) {
    const where = failure.region === undefined ? "in another region" : `in the region ${failure.region}`;
    return `the bucket "${bucket}" is ${where}, not ${region}; set TENDON_S3_REGION`;
  }
  if (status === 403) {
    return `${store} forbids something in the bucket "${bucket}" (${failure.message}); allow ${ACTIONS} to the key`;
  }
  return `${store} cannot be used (${failure.message}); check that TENDON_S3_ENDPOINT is an S3 store, and see its log`;
}

const ACTIONS =
  "s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket, s3:ListBucketMultipartUploads, s3:ListMultipartUploadParts and s3:AbortMultipartUpload";
