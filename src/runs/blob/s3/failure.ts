/** What an S3 store said when a request failed, or that it said nothing; and what an operator can do about it. */
import type { S3Options } from "../../../config/blobs.ts";

/** One failed request. */
export class S3Failure extends Error {
  /** The name of the error: one of S3's, or that of a system call. */
  readonly kind: string;
  /** HTTP status; undefined: there was no answer. */
  readonly status: number | undefined;
  /** As a full disk says it. */
  readonly code: "ENOSPC" | undefined;
  /** The region in which the bucket is, where the store says that it is another one. */
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

  /** Whether the same request may succeed soon. A store that was silent has had its time already. */
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

/** An error of the client library, as far as it is used here. */
interface SdkError {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly Region: string;
  readonly $metadata: { readonly httpStatusCode?: number };
  readonly $response: { readonly statusCode?: number; readonly headers?: Readonly<Record<string, string>> };
}

const NO_CREDENTIALS = "CredentialsProviderError";

/** Names that the TLS library gives. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|ALTNAME/;

/** Names that stores give to a full disk or an exhausted quota. */
const FULL = /QuotaExceeded|StorageFull|InsufficientStorage|InsufficientCapacity/;

/** Refusals with a status of the client that the next attempt may pass: bytes that changed on the way, clocks, load. */
const PASSING = /^(BadDigest|XAmzContent(SHA256|Checksum)Mismatch|RequestTime(out|TooSkewed)|SlowDown|IncompleteBody)$/;

/** What failed and what to do, with a semicolon between them, for the operator. */
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
  // The second is what versitygw says.
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
