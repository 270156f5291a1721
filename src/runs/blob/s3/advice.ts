/** What an operator can do about a failed request to an S3 store. */
import type { S3Options } from "../../../config/blobs.ts";
import { CERTIFICATE, NO_CREDENTIALS, type S3Failure } from "./failure.ts";

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
